from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest

from windlass.core.job import Job, JobState
from windlass.core.transitions import MOVES, Moved
from windlass.errors import InvalidTransition, JobNotFound, LeaseHeld

# The legal moves, written out a second time on purpose; * is for recurring jobs, ! for jobs that wait after a failure.
TABLE = """
cancel       | scheduled pending paused running
stop         | running*
pause        | scheduled pending*
resume       | paused
disable      | scheduled paused running pending*
enable       | scheduled pending paused running
run now      | scheduled pending paused running
retry        | failed scheduled!
edit         | scheduled pending paused running failed
boost        | scheduled pending paused running failed
set priority | scheduled pending paused running failed
bury         | pending scheduled
"""


def a_job(number: int, state: JobState) -> Job:
    values: dict[str, Any] = dict.fromkeys(field.name for field in fields(Job))
    return Job(**values | {"id": number, "state": state})


def test_the_table_of_moves_is_as_written_here() -> None:
    written = {
        move.strip(): set(sources.split()) for move, _, sources in (row.partition("|") for row in TABLE.strip().splitlines())
    }
    marked = {"": "sources", "*": "recurring", "!": "retrying"}
    found = {
        name: {f"{state}{mark}" for mark, part in marked.items() for state in getattr(move, part)}
        for name, move in MOVES.items()
        if move.has_sources
    }
    assert found == written


def test_a_move_that_changed_its_job_returns_it() -> None:
    job = a_job(7, JobState.CANCELLED)
    assert Moved("cancel", (job,), (), ()).one() is job


@pytest.mark.parametrize("move", MOVES)
def test_a_refused_move_names_the_job_the_move_and_both_states(move: str) -> None:
    with pytest.raises(InvalidTransition) as caught:
        Moved(move, (), (a_job(7, JobState.COMPLETED),), ()).one()
    error = caught.value
    assert (error.job_id, error.move, error.state, error.target) == (7, move, JobState.COMPLETED, MOVES[move].target)
    assert str(error).startswith("cannot ")
    assert "job 7" in str(error)
    assert f"completed → {MOVES[move].target}" in str(error)


@pytest.mark.parametrize(
    ("move", "state", "target", "text"),
    [
        ("pause", "completed", "paused", "cannot pause job 7: completed → paused is not a legal move"),
        ("pause", "paused", "paused", "cannot pause job 7: paused → paused is not a legal move"),
        ("fail", "scheduled", "scheduled", "cannot fail job 7: it is not running (scheduled → scheduled is not a legal move)"),
        ("fail", "completed", "failed", "cannot fail job 7: completed → failed is not a legal move"),
        ("stop", "scheduled", "scheduled", "cannot stop job 7: it is not running (scheduled → scheduled is not a legal move)"),
        ("take lease", "pending", "scheduled", "cannot take the lease of job 7: pending → scheduled is not a legal move"),
        ("run now", "completed", "pending", "cannot run job 7 now: completed → pending is not a legal move"),
        ("set priority", "failed", "scheduled", "cannot set the priority of job 7: failed → scheduled is not a legal move"),
    ],
)
def test_a_refused_move_reads_as_english(move: str, state: str, target: str, text: str) -> None:
    assert str(InvalidTransition(7, move, state, target)) == text


def test_a_move_whose_name_does_not_say_where_it_leads_names_its_target() -> None:
    moved = Moved("override", (), (a_job(7, JobState.SCHEDULED),), (), JobState.RUNNING)
    with pytest.raises(InvalidTransition, match="cannot override job 7: scheduled → running"):
        moved.one()


def test_a_refused_delete_names_who_holds_the_job() -> None:
    with pytest.raises(LeaseHeld, match="cannot delete job 7: w1 holds its lease") as caught:
        Moved("delete", (), (replace(a_job(7, JobState.RUNNING), worker="w1"),), ()).one()
    assert (caught.value.job_id, caught.value.worker) == (7, "w1")


def test_a_move_of_a_job_that_does_not_exist_is_not_found() -> None:
    with pytest.raises(JobNotFound, match="job 404 not found") as caught:
        Moved("retry", (), (), (404,)).one()
    assert caught.value.job_id == 404
