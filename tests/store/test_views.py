"""The views answer the questions of the systems they show, in the SQL of those systems."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.store.builders import a_job, end, enqueue_one, fail_for_good, failure, running
from tests.support.stores import fresh_url
from windlass.core.ids import execution_uuid, job_uuid
from windlass.core.payload import encode_object
from windlass.core.retry import RetrySpec
from windlass.errors import SchemaError
from windlass.store import Store, open_database, open_store, views
from windlass.store.blocking import BlockingDatabase
from windlass.testing import FakeClock

KINDS = ("sqlite-file", "postgres")


@pytest.fixture(params=KINDS)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    server = request.getfixturevalue("postgres_server") if request.param == "postgres" else None
    with fresh_url(request.param, tmp_path, server) as made:
        yield made


@pytest.fixture
def database(url: str) -> Iterator[BlockingDatabase]:
    opened = open_database(url, rng=Random(1))
    yield opened
    opened.close()


@pytest.fixture
async def store(url: str, clock: FakeClock) -> Any:
    opened = open_store(url, rng=Random(1)).at(clock)
    yield opened
    await opened.aclose()


def ask(database: BlockingDatabase, sql: str) -> list[tuple[Any, ...]]:
    """Run a question as the async jobs system asks it; on SQLite the time arithmetic is SQLite's."""
    if database.dialect == "sqlite":
        sql = sql.replace("NOW() - INTERVAL '1 hour'", "datetime('now', '-1 hour')")
    found: list[tuple[Any, ...]] = database.run_script(lambda connection: connection.execute(sql).fetchall())
    return found


def test_views_are_made_again_and_taken_away(database: BlockingDatabase) -> None:
    assert views.install(database) == views.install(database) == views.NAMES
    assert views.remove(database) == views.NAMES
    assert views.remove(database) == ()


@pytest.mark.parametrize("made", ["table job_metrics (id integer)", "view job_metrics as select 1 as one"])
def test_a_name_that_is_taken_is_left_alone_and_nothing_is_made(database: BlockingDatabase, made: str) -> None:
    ask_nothing = f"create {made}"
    database.run_script(lambda connection: connection.execute(ask_nothing) and None)
    with pytest.raises(SchemaError, match="job_metrics is there already"):
        views.install(database)
    assert views.remove(database) == ()
    assert ask(database, "SELECT * FROM job_metrics") in ([], [(1,)])


async def test_the_questions_of_the_async_jobs_system(store: Store, database: BlockingDatabase) -> None:
    views.install(database)
    clock = FakeClock()
    parent = await enqueue_one(store, a_job("email", correlation_id="user-action-123", priority=9))
    child = await enqueue_one(store, a_job("analysis", parent_id=parent, payload=encode_object({"id": 7})))
    await running(store, a_job("stuck", priority=99))
    again = await running(store, a_job("retried", priority=98, max_attempts=3))
    await end(store, clock, again, failure("no luck"), run=None)
    dead = await fail_for_good(store, clock, a_job("webhook", max_attempts=1, priority=97))
    await enqueue_one(store, a_job("later", delay=timedelta(hours=1)))

    assert ask(database, "SELECT * FROM job_queue_health ORDER BY type, status") == [
        ("analysis", "pending", 1),
        ("email", "pending", 1),
        ("later", "scheduled", 1),
        ("retried", "failed", 1),
        ("stuck", "processing", 1),
        ("webhook", "dead", 1),
    ]
    stuck = ask(
        database,
        "SELECT id, type, status, attempts, created_at, started_at FROM jobs "
        "WHERE status = 'processing' AND started_at < NOW() - INTERVAL '1 hour'",
    )
    assert [row[1:4] for row in stuck] == [("stuck", "processing", 1)]
    assert (
        ask(
            database,
            "SELECT type, COUNT(*) as failures, MAX(last_error_at) as latest_failure FROM jobs "
            "WHERE status = 'failed' AND last_error_at > NOW() - INTERVAL '1 hour' GROUP BY type",
        )
        == []
    )
    assert (
        ask(database, "SELECT service_name, state, failure_count, last_failure_at FROM circuit_breakers WHERE state != 'closed'")
        == []
    )
    letters = ask(
        database,
        "SELECT id, original_job->>'type' as job_type, error_message, died_at FROM dead_letter_jobs "
        "WHERE acknowledged = false ORDER BY died_at DESC",
    )
    assert [row[1:3] for row in letters] == [("webhook", "boom")]
    traced = ask(
        database,
        "SELECT id, type, status, created_at, completed_at, error_message FROM jobs "
        "WHERE correlation_id = 'user-action-123' ORDER BY created_at",
    )
    assert [row[:3] for row in traced] == [(parent, "email", "pending")]
    assert ask(
        database,
        "SELECT j1.id as parent_id, j1.type as parent_type, j2.id as child_id, j2.type as child_type FROM jobs j1 "
        "JOIN jobs j2 ON j1.id = j2.parent_job_id WHERE j1.correlation_id = 'user-action-123'",
    ) == [(parent, "email", child, "analysis")]
    assert ask(database, "SELECT type, priority, max_attempts FROM jobs ORDER BY priority, id") == [
        ("stuck", 1, 3),
        ("retried", 2, 3),
        ("webhook", 3, 1),
        ("email", 91, 3),
        ("analysis", 100, 3),
        ("later", 100, 3),
    ]
    assert ask(database, f"SELECT correlation_id FROM jobs WHERE id = {dead.id}") == [(str(job_uuid(dead.id)),)]
    metrics = ask(database, "SELECT job_type, status, duration_ms, queue_time_ms FROM job_metrics ORDER BY job_type")
    assert metrics == [("retried", "failed", 0, 0), ("webhook", "failed", 0, 0)]
    assert ask(database, f"SELECT success, error FROM job_attempts WHERE job_id = {dead.id}") == [(0, "boom")]
    assert ask(
        database, f"SELECT id, execution_number, retry_attempt FROM job_executions WHERE job_id = '{job_uuid(dead.id)}'"
    ) == [(str(execution_uuid(dead.id, 1)), 1, 0)]


@pytest.mark.parametrize("number", [1, 2**40 + 12345, 2**62 - 1, 2**62, 2**63 - 1])
async def test_a_correlation_shows_the_same_uuid_as_everywhere_else(
    store: Store, database: BlockingDatabase, number: int
) -> None:
    views.install(database)
    job_id = await enqueue_one(store)
    ask_nothing = [f"update windlass_jobs set id = {number} where id = {job_id}", f"update windlass_bodies set job_id = {number}"]
    database.run_script(lambda connection: [connection.execute(sql) and None for sql in ask_nothing])
    assert ask(database, "select correlation_id from jobs") == [(str(job_uuid(number)),)]


@pytest.mark.parametrize(
    ("retry", "most"),
    [
        (RetrySpec(), 3),
        (RetrySpec(base=timedelta(seconds=9)), 3),
        (RetrySpec(profile="crawl"), 4),
        (RetrySpec(profile="interval", base=timedelta(seconds=9)), 4),
        (RetrySpec(profile="pull"), 5),
    ],
)
async def test_a_job_shows_the_attempts_of_its_profile(
    store: Store, database: BlockingDatabase, retry: RetrySpec, most: int
) -> None:
    views.install(database)
    await enqueue_one(store, a_job(retry=retry))
    assert ask(database, "select max_attempts from jobs") == [(most,)]
    if retry.profile == "pull":
        await store.settings.set("MAX_ATTEMPTS_DEFAULT", 9)
        assert ask(database, "select max_attempts from jobs") == [(9,)]
