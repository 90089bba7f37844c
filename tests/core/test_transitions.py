from __future__ import annotations

from dataclasses import fields, replace
from itertools import product
from typing import Any

import pytest

from windlass.core.job import Job, JobState
from windlass.core.transitions import TARGETS, TRANSITIONS, Moved, is_legal
from windlass.errors import InvalidTransition, JobNotFound, LeaseHeld

# The legal moves, written out a second time on purpose.
TABLE = """
pending   | running scheduled paused failed cancelled
scheduled | pending running paused failed cancelled
running   | completed failed scheduled cancelled
paused    | scheduled cancelled
completed | scheduled
failed    | pending
cancelled | pending
"""
LEGAL = {
    (JobState(state.strip()), JobState(target))
    for state, _, targets in (line.partition("|") for line in TABLE.strip().splitlines())
    for target in targets.split()
}
RECURRING_ONLY = {(JobState.PENDING, JobState.PAUSED), (JobState.COMPLETED, JobState.SCHEDULED)}
PAIRS = list(product(JobState, JobState))


def a_job(number: int, state: JobState) -> Job:
    values: dict[str, Any] = dict.fromkeys(field.name for field in fields(Job))
    return Job(**values | {"id": number, "state": state})


def test_there_are_seven_states_and_so_49_pairs() -> None:
    assert len(PAIRS) == 49
    assert set(TRANSITIONS) == set(JobState)


@pytest.mark.parametrize(("state", "target"), PAIRS)
def test_a_recurring_job_moves_exactly_as_the_table_says(state: JobState, target: JobState) -> None:
    assert is_legal(state, target, is_recurring=True) is ((state, target) in LEGAL)


@pytest.mark.parametrize(("state", "target"), PAIRS)
def test_a_one_shot_job_has_every_move_but_the_recurring_ones(state: JobState, target: JobState) -> None:
    assert is_legal(state, target, is_recurring=False) is ((state, target) in LEGAL - RECURRING_ONLY)


@pytest.mark.parametrize("state", JobState)
def test_no_state_leads_to_itself(state: JobState) -> None:
    assert not is_legal(state, state)


@pytest.mark.parametrize("state", JobState)
def test_every_state_has_a_way_out(state: JobState) -> None:
    assert TRANSITIONS[state]


def test_a_move_that_changed_its_job_returns_it() -> None:
    job = a_job(7, JobState.CANCELLED)
    assert Moved("cancel", (job,), (), ()).one() is job


@pytest.mark.parametrize("move", TARGETS)
def test_a_refused_move_names_the_job_the_move_and_both_states(move: str) -> None:
    with pytest.raises(InvalidTransition) as caught:
        Moved(move, (), (a_job(7, JobState.COMPLETED),), ()).one()
    error = caught.value
    assert (error.job_id, error.move, error.state, error.target) == (7, move, JobState.COMPLETED, TARGETS[move])
    assert str(error).startswith("cannot ")
    assert "job 7" in str(error)
    assert f"completed → {TARGETS[move]}" in str(error)


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
