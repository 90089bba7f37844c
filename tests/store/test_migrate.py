"""Migrations: forward only, once, never edited."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest

from windlass.errors import ConfigError, SchemaError
from windlass.store import migrate, open_database, open_store
from windlass.store.doctor import check
from windlass.store.migrate import Migration
from windlass.store.postgres import SyncPostgres
from windlass.store.sqlite import Sqlite, has_wal_reset_bug

Database = Sqlite | SyncPostgres


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgres":
        return str(request.getfixturevalue("postgres_dsn"))
    return f"sqlite:///{tmp_path / 'empty.db'}"


def opened(url: str) -> Database:
    database = open_database(url, rng=Random(1))
    assert isinstance(database, Sqlite | SyncPostgres)
    return database


@pytest.fixture
def database(url: str) -> Iterator[Database]:
    found = opened(url)
    yield found
    found.close()


def test_up_applies_everything_once(database: Database) -> None:
    assert not any(one.is_applied for one in migrate.status(database))
    applied = migrate.up(database)
    assert [one.version for one in applied] == list(range(1, len(applied) + 1))
    assert migrate.up(database) == []
    assert all(one.is_applied for one in migrate.status(database))


def test_a_dry_run_writes_nothing(database: Database) -> None:
    planned = migrate.up(database, dry_run=True)
    assert "create table windlass_jobs" in planned[0].sql
    assert not any(one.is_applied for one in migrate.status(database))


def test_processes_that_migrate_at_once_do_it_once(url: str) -> None:
    databases = [opened(url) for _ in range(6)]
    with ThreadPoolExecutor(6) as pool:
        done = list(pool.map(migrate.up, databases))
    for one in databases:
        one.close()
    assert sorted(map(bool, done)) == [False] * 5 + [True]


@pytest.mark.parametrize("former", sorted(migrate._ALIKE))
def test_a_migration_whose_comment_was_another_is_the_same(database: Database, former: str) -> None:
    migrate.up(database)
    database.run_script(
        lambda connection: connection.execute(f"update windlass_schema set checksum = '{former}' where version = 6")
    )
    assert migrate.up(database) == []


def test_an_edited_migration_is_noticed(database: Database) -> None:
    migrate.up(database)
    database.run_script(lambda connection: connection.execute("update windlass_schema set checksum = 'other'"))
    with pytest.raises(SchemaError, match="migration 1 was applied from another text"):
        migrate.up(database)


def test_a_newer_database_is_noticed(database: Database) -> None:
    migrate.up(database)
    newer = "insert into windlass_schema (version, name, checksum, applied_at) values (999, 'future', '', '')"
    database.run_script(lambda connection: connection.execute(newer))
    with pytest.raises(SchemaError, match="upgrade Windlass"):
        migrate.status(database)


_NEW_JOB = "insert into windlass_jobs (task, lane, run_at, created_at, updated_at, {0}) values ('t', 'l', 1, 1, 1, {1})"
_BAD_JOBS = {
    "windlass_jobs_state": ("state", "'odd'"),
    "windlass_jobs_wait_reason": ("state, wait_reason", "'pending', 'odd'"),
    "windlass_jobs_waiting": ("state", "'pending'"),
    "windlass_jobs_closed": ("state", "'completed'"),
    "windlass_jobs_booleans": ("state, wait_reason, spawn", "'pending', 'new', 2"),
    "windlass_jobs_held": ("state, closed_at, held", "'failed', 1, 1"),
    "windlass_jobs_template": ("state, wait_reason, spawn, cadence", "'pending', 'new', 1, '{}'"),
    "windlass_jobs_unique_scope": ("state, wait_reason, unique_key, unique_scope", "'pending', 'new', 'k', 'odd'"),
    "windlass_jobs_lease": (
        "state, wait_reason, token, worker, claimed_at, lease_expires_at",
        "'pending', 'new', 1, 'w', 1, 1",
    ),
}


@pytest.mark.parametrize("rule", _BAD_JOBS)
def test_checks_of_sqlite_are_spelled_without_lists_and_still_hold(database: Database, rule: str) -> None:
    if database.dialect != "sqlite":
        pytest.skip("lists cost nothing there")
    migrate.up(database)
    tables = "select sql from sqlite_schema where name in ('windlass_jobs', 'windlass_executions')"
    texts = database.run_script(lambda connection: connection.execute(tables).fetchall())
    assert [text for (text,) in texts if " in (" in text] == []
    with pytest.raises(Exception, match=rule):
        database.run_script(lambda connection: connection.execute(_NEW_JOB.format(*_BAD_JOBS[rule])))


def test_a_guarded_schema_keeps_its_text_and_its_rules(
    database: Database, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As on systems whose SQLite ignores the pragma."""
    if database.dialect != "sqlite":
        pytest.skip("PostgreSQL changes constraints")
    caplog.set_level("INFO")
    pragma = "pragma writable_schema = on;\n"
    guarded = [one._replace(sql=one.sql.replace(pragma, "")) for one in migrate.migrations(database.dialect)]
    assert [one.version for one in migrate.migrations(database.dialect) if pragma in one.sql] == [12, 19]
    monkeypatch.setattr(migrate, "migrations", lambda _: guarded)
    migrate.up(database)
    [[text]] = database.run_script(
        lambda connection: connection.execute("select sql from sqlite_schema where name = 'windlass_jobs'").fetchall()
    )
    assert " in (" in text
    assert [record.getMessage() for record in caplog.records if "guards" in record.getMessage()]


def test_a_failing_migration_leaves_nothing_behind(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    bad = [*migrate.migrations(database.dialect), Migration(9999, "bad", "create table half (id integer);\nselect nonsense;")]
    monkeypatch.setattr(migrate, "migrations", lambda _: bad)
    with pytest.raises(Exception, match="nonsense"):
        migrate.up(database)
    monkeypatch.undo()
    assert not any(one.is_applied for one in migrate.status(database))


async def test_a_store_without_its_tables_says_what_to_do(url: str) -> None:
    store = open_store(url, rng=Random(1))
    with pytest.raises(SchemaError, match="windlass migrate"):
        await store.slices()
    await store.aclose()


async def test_a_store_whose_tables_are_too_old_says_what_to_do(
    url: str, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = migrate.migrations(database.dialect)[:1]
    monkeypatch.setattr(migrate, "migrations", lambda _: first)
    migrate.up(database)
    store = open_store(url, rng=Random(1))
    with pytest.raises(SchemaError, match="windlass migrate"):
        await store.slices()
    await store.aclose()


INSTANTS = {"sqlite": "1700000000000000", "postgres": "timestamptz '2023-11-14 22:13:20+00'"}
# One row of each kind that the later migrations touch, as the first schema has them.
ROWS = (
    (
        "insert into windlass_jobs (id, task, state, run_at, closed_at, executions, created_at, updated_at)"
        " values (1, 'work', 'completed', {at}, {at}, 2, {at}, {at})"
    ),
    "insert into windlass_bodies (job_id, payload) values (1, '{{}}')",
    (
        "insert into windlass_executions"
        " (job_id, number, attempt, token, worker, started_at, finished_at, wait_ms, status, reason)"
        " values (1, 1, 1, 1, 'w', {at}, {at}, 5, 'failed', 'error')"
    ),
    (
        "insert into windlass_executions (job_id, number, attempt, token, worker, started_at, finished_at, wait_ms, status)"
        " values (1, 2, 2, 2, 'w', {at}, {at}, 7, 'completed')"
    ),
    (
        "insert into windlass_dead_letters (job_id, task, lane, original_job, error, fingerprint, first_died_at, died_at,"
        " closed_at, closed_reason) values (1, 'work', 'default', '{{}}', 'boom', 'f', {at}, {at}, {at}, 'retried')"
    ),
    "insert into windlass_tasks (name, lane, first_seen_at, seen_at) values ('work', 'default', {at}, {at})",
    "insert into windlass_items (collection, key, job_id, data, created_at) values ('c', 'k', 1, '{{}}', {at})",
    "insert into windlass_audit (at, principal, action) values ({at}, 'ann', 'cancel')",
    "insert into windlass_totals (task, status, runs, duration_ms) values ('work', 'completed', 1, 1)",
    "insert into windlass_minutes (minute, task) values ({at}, 'work')",
)


async def test_a_first_schema_with_rows_is_brought_up_to_date(
    url: str, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = migrate.migrations(database.dialect)[:1]
    monkeypatch.setattr(migrate, "migrations", lambda _: first)
    migrate.up(database)
    at = INSTANTS[database.dialect]

    def fill(connection: Any) -> None:
        for row in ROWS:
            connection.execute(row.format(at=at))

    database.run_script(fill)
    monkeypatch.undo()
    migrate.up(database)
    store = open_store(url, rng=Random(1))
    assert await check(store) == []
    assert [(one.status, one.runs, one.wait_ms) for one in await store.runs.totals()] == [("completed", 1, 7), ("failed", 1, 5)]
    assert [job.id for job in (await store.list_jobs()).jobs] == [1]
    assert len((await store.letters.list()).letters) == 1
    assert [one.is_declared for one in await store.tasks.list()] == [True]
    assert (await store.audit.chain())[0] == 1
    await store.aclose()


# What a release without lanes had counted: one minute folded, one run not yet.
_COUNTED = (
    (
        "insert into windlass_minutes"
        " (minute, task, completed, failed, cancelled, wait_ms, duration_ms, wait_histogram, run_histogram)"
        """ select {at}, name, 3, 1, 0, 8, 40, '{{"1":4}}', '{{"10":4}}' from (select '' as name union select 'work') as tasks"""
    ),
    (
        "insert into windlass_run_deltas (minute, task, status, wait_bucket, run_bucket, runs, wait_ms, duration_ms)"
        " values ({at}, 'work', 'completed', 2, 11, 1, 2, 10)"
    ),
)


async def test_runs_that_were_counted_without_a_lane_stay_counted(
    url: str, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = [one for one in migrate.migrations(database.dialect) if one.version < 13]
    monkeypatch.setattr(migrate, "migrations", lambda _: before)
    migrate.up(database)

    def fill(connection: Any) -> None:
        for row in _COUNTED:
            connection.execute(row.format(at=INSTANTS[database.dialect]))

    database.run_script(fill)
    monkeypatch.undo()
    migrate.up(database)
    store = open_store(url, rng=Random(1))
    at = datetime(2023, 11, 14, 22, tzinfo=UTC)
    for is_folded in (False, True):
        if is_folded:
            assert await store.runs.fold() == 1
        for task in (None, "work"):
            [minute] = await store.runs.minutes(at, at + timedelta(hours=1), task=task)
            assert (minute.completed, minute.failed, minute.runs.counts) == (4, 1, {10: 4, 11: 1})
        assert await store.runs.minutes(at, at + timedelta(hours=1), lane="default") == []
    await store.aclose()


def test_line_ends_do_not_change_a_checksum() -> None:
    assert Migration(1, "a", "x\r\ny\r\n").checksum == Migration(1, "a", "x\ny\n").checksum


@pytest.mark.parametrize(
    ("url", "part"),
    [
        ("mysql://x", "sqlite:/// or postgresql://"),
        ("sqlite://jobs.db", "three slashes"),
        ("postgresql:///x?prepare=maybe", "prepare must be on or off"),
    ],
)
def test_a_bad_url_says_what_is_wrong(url: str, part: str) -> None:
    with pytest.raises(ConfigError, match=part):
        open_store(url, rng=Random(1))


@pytest.mark.parametrize(
    ("version", "is_affected"),
    [((3, 40, 1), True), ((3, 51, 2), True), ((3, 51, 3), False), ((3, 50, 7), False), ((3, 44, 6), False), ((3, 53, 4), False)],
)
def test_builds_with_the_wal_reset_bug_are_known(version: tuple[int, ...], is_affected: bool) -> None:  # noqa: FBT001
    assert has_wal_reset_bug(version) is is_affected


def test_a_sqlite_without_full_text_search_is_refused_with_a_remedy() -> None:
    class Bare:
        """Answers as a library that was built without FTS5."""

        def execute(self, query: str) -> list[tuple[str, int]]:
            assert "fts5" in query
            return [("3.40.1", 0)]

    with pytest.raises(SchemaError, match=r"3\.40\.1 was built without FTS5; install windlass\[sqlite\]"):
        migrate._lock(Bare(), "sqlite")
