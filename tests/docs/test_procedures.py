"""docs/operations/procedures.md: every line is typed, and prints what stands beside it."""

from __future__ import annotations

import asyncio
import shlex
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from tests.docs.blocks import lines
from tests.support.stores import fresh_url
from windlass import Windlass
from windlass.cli.main import main
from windlass.core.chore import CHORES
from windlass.core.job import JobState

PAGE = "docs/operations/procedures.md"
TOLD = {
    "alerts": "all clear",
    "alerts history": "cleared at",
    "alerts silence depth": "silenced",
    "alerts unsilence depth": "depth",
    "stats": "0 of 0 slots busy on 0 workers",
    "top --once --view failing": "no such address",
    "explain 4": "job 4: failed",
    "explain 5": "retry",
    "explain 7": "windlass worker",
    "explain 8": "due",
    "explain --lane fast": "lane fast: ",
    "explain --task email": "task email: ",
    "trace user-action-123": "email",
    "dead list --status open": "no such address",
    "dead show 1": "Buried: no such address",
    "dead acknowledge 1": "dead letter 1 of job 1 is acknowledged",
    "dead requeue 2": "dead letter 2 of job 2 is requeued",
    "dead requeue --task email --dry-run": "1 match; nothing was changed",
    "retry 1": "job 1 is pending",
    "breakers": "state",
    "breakers open": "breaker email-service is open",
    "breakers reset": "breaker email-service is closed",
    "drain --all": "every lane is paused; 0 still running",
    "lanes resume --all": "every lane is open",
    "tasks drain email": "task email is paused; 0 still running",
    "tasks resume": "is open",
    "tasks pause crawl": "task crawl is paused",
    "pause --task report": "1 matched: 1 paused",
    "resume --task report": "1 matched: 1 resumed",
    "workers": "is online",
    "doctor": "no worker is alive",
    "doctor --deep": "ok       counts",
    "doctor --repair": "counts and totals were right; nothing was changed",
    "jobs --state running": "crawl",
    "job 3": "operator:worker-7",
    "take-lease 3": "job 3 is scheduled",
    "fail 4": "job 4 is failed",
    "job 5": "timed out",
    "jobs --state scheduled": "recurrence",
    "chores": "reclaim",
    "edit 5": "job 5 is changed: max attempts",
    "run-now 5": "job 5 is pending",
    "schedules": "at 03:00 (UTC)",
    "schedules show nightly": "it would run at",
    "job 6": "paused",
    "resume 6": "job 6 is scheduled",
    "jobs --state pending --sort priority": "pending",
    "boost 7": "job 7 has priority 20",
    "dead list --status open --task email": "stuck",
    "jobs --state failed --task email": "stuck",
    "sources": "https://example.org",
    "lanes": "fast",
    "tasks": "crawl",
    "jobs --correlation-id user-action-123": "email",
}
"""What a line prints, by its beginning; the longest that fits counts."""
UNWELL = frozenset({"doctor"})
"""Nobody works on this database, and the doctor says so."""


def _prepare(app: Windlass) -> None:
    """Make what the page speaks of: jobs 1 to 7, two letters, a schedule, an action."""
    for task in ("email", "email", "crawl", "email", "crawl", "report", "crawl"):
        app.enqueue_sync(task, {}, lane="fast" if task == "crawl" else "default", delay="1h" if task == "report" else 0)
    for number in (1, 2):
        app.bury_sync(number, "no such address")
    app.fail_sync(5, "timed out")
    app.recurring_sync("nightly", "backup", "0 3 * * *")
    app.enqueue_sync("email", {}, correlation_id="user-action-123")


async def _keep(url: str) -> None:
    """Do every chore once."""
    async with Windlass(url) as app, app.keeping(), asyncio.timeout(30):
        while not {chore.name for chore in await app.chores.list()} >= CHORES:  # noqa: ASYNC110 - the database tells
            await asyncio.sleep(0.02)


@pytest.mark.parametrize("backend", ["sqlite-file", "postgres"])
def test_every_procedure_does_what_stands_beside_it(backend: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    server = request.getfixturevalue("postgres_server") if backend == "postgres" else None
    with fresh_url(backend, tmp_path, server) as url, Windlass(url, accept_unknown=True) as app:
        asyncio.run(_keep(url))
        _prepare(app)
        _typed("sources set 7 https://example.org --name Seven", url)
        for line in lines(PAGE):
            typed = line.removeprefix("windlass ")
            _make_so(app, typed)
            if typed.startswith("worker "):
                _check_options(typed)
                continue
            result = _typed(typed, url)
            assert result.exit_code == (2 if typed.split()[0] in UNWELL else 0), (line, result.output, result.exception)
            assert _expected(typed) in result.output, (line, result.output)


def _make_so(app: Windlass, typed: str) -> None:
    """Bring about what the next line is for."""
    if typed.startswith("jobs --state running"):
        for number in (3, 4):
            if app.get_sync(number).state is not JobState.RUNNING:
                app.override_status_sync(number, JobState.RUNNING, by="worker-7")
    elif typed == "job 6":
        app.pause_sync(6)


def _expected(typed: str) -> str:
    return TOLD[max((start for start in TOLD if f"{typed} ".startswith(f"{start} ")), key=len)]


def _typed(line: str, url: str) -> Result:
    return CliRunner().invoke(main, shlex.split(line), env={"WINDLASS_DATABASE_URL": url})


def _check_options(typed: str) -> None:
    """Read the options of a command that runs until it is stopped; tests/cli runs them."""
    name, *arguments = shlex.split(typed)
    command = main.get_command(click.Context(main), name)
    assert command is not None
    command.make_context(name, arguments)
