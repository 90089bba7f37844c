from __future__ import annotations

from dataclasses import fields, replace
from datetime import UTC, datetime
from typing import Any

import pytest

from windlass.core.filter import JobFilter, StateFilter
from windlass.core.job import JobState, WaitReason
from windlass.core.page import Cursor, JobQuery, Keys
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


PARTS: dict[str, Any] = {
    "states": ("pending",),
    "tasks": ("mail",),
    "lanes": ("fast",),
    "subject": "s",
    "correlation_id": "c",
    "parent_id": 1,
    "search": "x",
    "since": datetime(2026, 1, 1, tzinfo=UTC),
    "priority": 1,
    "worker": "w",
    "error": "e",
    "is_template": True,
    "is_recurring": True,
}


@pytest.mark.parametrize("part", [one.name for one in fields(JobFilter)])
def test_a_cursor_does_not_pass_for_another_filter(part: str) -> None:
    query = JobQuery()
    cursor = query.cursor_at(Cursor(Keys(0, 0, 1), 1, is_total_exact=True))
    with pytest.raises(InvalidInput, match="belongs to another list"):
        replace(query, filter=JobFilter(**{part: PARTS[part]}), cursor=cursor)
