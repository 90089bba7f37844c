"""`windlass move` takes a database that has been at work to another, whatever interrupts it."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from random import Random

import pytest
from click.testing import CliRunner, Result

from tests.moving.comparing import compare, rows_of
from tests.moving.conftest import FROM_POSTGRES, FROM_SQLITE, Route
from tests.moving.jobs_app import DEAD, JOBS, make_app
from windlass import Windlass
from windlass.cli.main import main
from windlass.core.job import Lease, NewJob
from windlass.errors import SchemaError
from windlass.store.moving.tables import OF_EACH_DATABASE
from windlass.testing import run_all

IS_LONG = os.environ.get("WINDLASS_TEST_LONG") == "1"
KILLS = 10 if IS_LONG else 3


def typed(*arguments: str, code: int = 0) -> Result:
    result = CliRunner().invoke(main, ["move", *arguments])
    assert result.exit_code == code, (result.output, result.exception)
    return result


def moving(route: Route) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.moving.mover", *route]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def go_on(process: subprocess.Popen[str]) -> None:
    """Wait until a row is there, and let the next one come."""
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stdout.readline(), "the move ended before it was killed"
    process.stdin.write("\n")
    process.stdin.flush()


def test_everything_arrives_and_the_work_goes_on(route: Route) -> None:
    told = typed(route.source, route.target).output
    assert "rows are there" in told
    before, after = rows_of(route.source, route.target), rows_of(route.target, route.source)
    assert before == after
    assert compare(route.target, route.source).different == []
    assert before.keys().isdisjoint(OF_EACH_DATABASE)
    assert len(before["windlass_jobs"]) == 2 * JOBS + DEAD
    asyncio.run(_go_on(route.target))
    changed = {table for table, *_ in compare(route.target, route.source).different}
    assert changed >= {"windlass_jobs", "windlass_bodies", "windlass_executions"}


async def _go_on(url: str) -> None:
    """Enqueue and run a job: it has a number that nobody had, and the counts know of it."""
    app = make_app(url)
    async with app:
        job = await app.enqueue("add", {"one": 1, "other": 2})
        assert job.id == 2 * JOBS + DEAD + 2
        assert len(await run_all(app)) == 1
        again = await app.enqueue("add", {"one": 1, "other": 2}, delay="1h", unique_key="later-3")
        assert again.is_duplicate
        found = await app.doctor(deep=True)
        assert [one.message for one in found.findings if one.check in {"rows", "counts", "audit"} and one.remedy] == []


def test_a_move_that_is_killed_anywhere_goes_on_where_it_was(route: Route) -> None:
    rng = Random(7)
    for _ in range(KILLS):
        with moving(route) as process:
            for _ in range(rng.randint(1, 6)):
                go_on(process)
            # It is at its next row now, wherever that is.
            process.send_signal(signal.SIGKILL)
    with pytest.raises(SchemaError, match="has not ended"), Windlass(route.target) as app:
        app.check_schema()
    typed(route.source, route.target)
    assert rows_of(route.source, route.target) == rows_of(route.target, route.source)
    asyncio.run(_go_on(route.target))


@FROM_POSTGRES
def test_what_changed_between_two_attempts_is_not_mixed(route: Route) -> None:
    with moving(route) as process:
        go_on(process)
        process.kill()
    with make_app(route.source) as app:
        app.enqueue_sync("add", {"one": 1, "other": 1})
    refused = typed(route.source, route.target, code=1).stderr
    assert "has changed since the move into this target began" in refused
    assert "windlass_jobs" in refused


@FROM_SQLITE
def test_a_target_that_has_rows_is_refused(route: Route) -> None:
    with make_app(route.target) as app:
        app.migrate()
        app.enqueue_sync("add", {"one": 1, "other": 1})
    before = rows_of(route.target, route.source)
    assert "the target is not empty (windlass_bodies" in typed(route.source, route.target, code=1).stderr
    assert rows_of(route.target, route.source) == before


@FROM_POSTGRES
def test_a_source_that_is_at_work_is_refused_unless_told_otherwise(route: Route) -> None:
    leased = asyncio.run(_lease(route.source))
    refused = typed(route.source, route.target, code=1).stderr
    assert "1 jobs are leased" in refused
    typed(route.source, route.target, "--force")
    with make_app(route.target) as app:
        job = app.get_sync(leased)
    assert (job.state, job.worker) == ("running", "away")


async def _lease(url: str) -> int:
    app = make_app(url)
    async with app:
        store = await app.store()
        [job] = await store.enqueue([NewJob(task="leased", lane="pull")])
        slices = await store.slices()
        [claimed] = await store.claim(slices, 1, Lease(77, "away", timedelta(minutes=10)))
    assert claimed.id == job.id
    return job.id


def test_the_same_database_and_one_that_is_not_there_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    assert "there is no database" in typed(f"sqlite:///{path}", "sqlite://", code=2).stderr
    with make_app(f"sqlite:///{path}") as app:
        app.migrate()
    other = f"sqlite:///{tmp_path}/./jobs.db"
    assert "the same database" in typed(f"sqlite:///{path}", other, code=2).stderr
