"""Pausing, resuming and draining from the command line: a slip of the keyboard is refused, and `--all` means everything."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cli.conftest import Command
from windlass import Windlass
from windlass.core.blocking import run
from windlass.core.job import NewJob
from windlass.core.known_task import DeclaredTask

BOTH = pytest.mark.parametrize("url", ["sqlite-file", "postgres"], indirect=True)
pytestmark = BOTH


@pytest.mark.parametrize("verb", ["pause", "resume", "drain"])
def test_a_task_that_nothing_declared_is_refused_with_the_nearest_names(windlass: Command, app: Windlass, verb: str) -> None:
    run(run(app.blocking_store()).tasks.declare([DeclaredTask(name="send_mail")]))
    refused = windlass("tasks", verb, "send_mial", code=1)
    assert "task 'send_mial' not found" in refused.stderr
    assert "did you mean 'send_mail'?" in refused.stderr
    assert "--force" in refused.stderr
    assert [one.name for one in app.known_tasks.list_sync()] == ["send_mail"]
    windlass("tasks", verb, "send_mail")
    windlass("tasks", verb, "send_mial", "--force")


@pytest.mark.parametrize("verb", ["pause", "resume", "drain"])
def test_a_lane_that_nothing_declared_is_refused_with_the_nearest_names(windlass: Command, app: Windlass, verb: str) -> None:
    app.enqueue_jobs_sync([NewJob(task="mail", lane="letters")])
    refused = windlass("lanes", verb, "leters", code=1)
    assert "did you mean 'letters'?" in refused.stderr
    assert "no known name is spelled like it" in windlass("lanes", verb, "xyzzy", code=1).stderr
    assert [one.name for one in app.lanes.list_sync()] == ["letters"]
    windlass("lanes", verb, "letters")
    windlass("lanes", verb, "leters", "--force")


def test_a_task_with_jobs_is_known_though_nothing_declared_it(windlass: Command, app: Windlass) -> None:
    app.enqueue_jobs_sync([NewJob(task="scrape", lane="pull")])
    assert windlass("tasks", "pause", "scrape").stdout == "windlass: task scrape is paused\n"


@pytest.mark.parametrize("every", ["--all", "*"])
def test_every_lane_is_paused_and_resumed_at_once(windlass: Command, ask: Any, app: Windlass, every: str) -> None:
    app.enqueue_jobs_sync([NewJob(task="mail", lane=lane) for lane in ("a", "b")])
    windlass("lanes", "pause", "b")
    assert windlass("lanes", "pause", every).stdout == "windlass: every lane is paused\n"
    app.enqueue_jobs_sync([NewJob(task="mail", lane="new")])
    assert {one["name"]: one["is_paused"] for one in ask("lanes")["lanes"]} == dict.fromkeys(("*", "a", "b", "new"), True)
    assert run(run(app.blocking_store()).slices()).open == ()
    assert "every lane is" in windlass("lanes", "resume", "a").stdout
    assert windlass("lanes", "resume", every).stdout == "windlass: every lane is open; paused on their own: b\n"
    assert {part.lane for part in run(run(app.blocking_store()).slices()).open} == {"a", "new"}
    assert {one["name"]: one["is_paused"] for one in ask("lanes")["lanes"]} == {"a": False, "b": True, "new": False}


def test_everything_is_drained_with_one_command(windlass: Command, ask: Any, app: Windlass) -> None:
    app.enqueue_jobs_sync([NewJob(task="mail", lane=lane) for lane in ("a", "b")])
    app.override_status_sync(1, app.get_sync(1).state.RUNNING, by="ann")
    assert ask("drain", "--all", "--wait", "10ms", code=1)["running"] == 1
    assert "1 still running" in windlass("lanes", "drain", "--all", code=1).stdout
    app.cancel_sync(2)
    app.take_lease_sync(1)
    assert windlass("drain", "--all", "--wait").stdout == "windlass: every lane is paused; 0 still running\n"
    assert ask("lanes", "resume", "--all")["is_changed"]


def test_all_or_a_name_is_needed_and_not_both(windlass: Command) -> None:
    for arguments in (["lanes", "pause"], ["lanes", "drain", "a", "--all"], ["drain"], ["tasks", "pause"]):
        windlass(*arguments, code=2)
