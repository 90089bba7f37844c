from __future__ import annotations

from typing import Any

import pytest

from windlass.core.filter import JobFilter, StateFilter
from windlass.core.job import JobState, WaitReason
from windlass.errors import InvalidInput


def test_every_state_is_no_filter() -> None:
    assert JobFilter(states=tuple(map(StateFilter, JobState))) == JobFilter()


def test_a_state_for_some_reasons_stays_a_filter() -> None:
    some = tuple(StateFilter(state, frozenset({WaitReason.NEW})) for state in JobState)
    assert JobFilter(states=some).states == some


@pytest.mark.parametrize(("field", "value"), [("subject", ""), ("search", "x" * 201), ("correlation_id", "a\0b")])
def test_what_no_job_could_have_is_refused_by_name(field: str, value: Any) -> None:
    with pytest.raises(InvalidInput, match=field):
        JobFilter(**{field: value})


def test_a_state_may_be_named_alone() -> None:
    wanted = (StateFilter(JobState.COMPLETED), StateFilter(JobState.RUNNING))
    assert JobFilter(states=("completed", JobState.RUNNING)).states == wanted
    assert JobFilter(states="completed").states == wanted[:1]
    with pytest.raises(InvalidInput, match=r"states: must be of scheduled, pending.*'done'"):
        JobFilter(states=("done",))
