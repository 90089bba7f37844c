"""What operators do to single jobs from the command line."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tests.cli.conftest import Command
from windlass import Windlass
from windlass.core.job import JobState, NewJob

pytestmark = pytest.mark.parametrize("url", ["sqlite-file", "postgres"], indirect=True)


def start(app: Windlass, count: int = 1) -> None:
    for made in app.enqueue_jobs_sync([NewJob(task="mail") for _ in range(count)]):
        app.override_status_sync(made.id, JobState.RUNNING, by="ann")


def test_a_run_is_failed_by_its_policy_or_for_good(windlass: Command, ask: Any, app: Windlass) -> None:
    start(app, 2)
    assert windlass("fail", "1", "--error", "stuck").stdout == "windlass: job 1 is scheduled\n"
    assert (app.get_sync(1).wait_reason, app.get_sync(1).last_error) == ("retry", "stuck")
    [job] = ask("fail", "2", "--for-good")["jobs"]
    assert (job["state"], job["last_error"]) == ("failed", "failed by an operator")
    app.enqueue_jobs_sync([NewJob(task="mail"), NewJob(task="mail", delay=timedelta(hours=1))])
    assert windlass("fail", "3").stdout == "windlass: job 3 is scheduled\n"
    assert "scheduled → scheduled" in windlass("fail", "4", code=1).stderr
    assert "job 9 not found" in windlass("fail", "9", code=1).stderr


def test_a_waiting_job_is_buried(windlass: Command, ask: Any, app: Windlass) -> None:
    app.enqueue_jobs_sync([NewJob(task="mail")])
    assert windlass("bury", "1", "--error", "no use").stdout == "windlass: job 1 is failed\n"
    assert ask("dead", "show", "1")["error"] == "no use"
    assert "failed → failed" in windlass("bury", "1", code=1).stderr


def test_a_lease_is_taken(windlass: Command, app: Windlass) -> None:
    start(app)
    assert windlass("take-lease", "1").stdout == "windlass: job 1 is scheduled\n"
    assert app.get_sync(1).wait_reason == "lost"


def test_a_job_is_boosted(windlass: Command, app: Windlass) -> None:
    app.enqueue_jobs_sync([NewJob(task="mail")])
    assert windlass("boost", "1").stdout == "windlass: job 1 has priority 10\n"
    assert windlass("boost", "1", "--amount", "95").stdout == "windlass: job 1 has priority 100\n"
    windlass("boost", "1", "--amount", "0", code=2)
    windlass("boost", code=2)


def test_a_finished_job_is_cloned(windlass: Command, app: Windlass) -> None:
    app.enqueue_jobs_sync([NewJob(task="mail")])
    assert "pending" in windlass("clone", "1", code=1).stderr
    app.cancel_sync(1)
    assert windlass("clone", "1").stdout == "windlass: job 2 is a clone of job 1\n"
    assert (app.get_sync(2).created_by or "").startswith("cli:")


def test_a_job_is_edited(windlass: Command, ask: Any, app: Windlass) -> None:
    app.enqueue_jobs_sync([NewJob(task="mail")])
    changed = ask("edit", "1", "--payload", '{"a": 1}', "--timeout", "30s", "--max-attempts", "7", "--priority", "5")
    assert (changed["payload"], changed["timeout_us"], changed["max_attempts"], changed["priority"]) == (
        {"a": 1},
        30_000_000,
        7,
        5,
    )
    said = windlass("edit", "1", "--metadata", "-", "--description", "new", stdin='{"b": 2}').stdout
    assert said == "windlass: job 1 is changed: description, metadata\n"
    assert "payload" in windlass("edit", "1", "--payload", "[1]", code=2).stderr
    windlass("edit", "1", code=2)
