"""Filters that select jobs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields
from datetime import datetime
from typing import NamedTuple, cast

from windlass.core.checks import check_instant, check_range, check_text
from windlass.core.ids import MAX_JOB, parse_job_id
from windlass.core.job import INT32, MAX_KEY, MAX_NAME, JobState, WaitReason
from windlass.core.record import record
from windlass.errors import InvalidInput

MAX_SEARCH = 200
_TEXTS = {"subject": MAX_KEY, "correlation_id": MAX_KEY, "search": MAX_SEARCH, "worker": MAX_KEY, "error": MAX_SEARCH}


class StateFilter(NamedTuple):
    """Jobs in a state, for any reason or for one of some."""

    state: JobState
    reasons: frozenset[WaitReason] | None = None


def _listed(states: Iterable[StateFilter | str]) -> Iterable[StateFilter | str]:
    # A string is a sequence too, and one name is often meant.
    return (states,) if isinstance(states, str) else states


def _state_filter(given: StateFilter | str) -> StateFilter:
    if isinstance(given, StateFilter):
        return given
    try:
        return StateFilter(JobState(given))
    except ValueError:
        raise InvalidInput("states", given, f"must be of {', '.join(JobState)}") from None


def own_job(correlation_id: str) -> int | None:
    """Read a correlation id as a job's own UUID; a plain number may be a correlation id of an application."""
    return None if correlation_id.isdecimal() else parse_job_id(correlation_id)


@record(kw_only=True)
class JobFilter:
    """A set of jobs; an empty field asks for nothing."""

    states: Sequence[StateFilter | str] = ()
    """Also by their names alone, as in `("failed", "running")`: in those states for any reason."""
    tasks: tuple[str, ...] = ()
    lanes: tuple[str, ...] = ()
    subject: str | None = None
    correlation_id: str | None = None
    """A job's own UUID means the job and its children too."""
    parent_id: int | None = None
    search: str | None = None
    """Found in the task, name, subject, unique key, last error or payload, whatever the case."""
    since: datetime | None = None
    """Created at this time or later."""
    priority: int | None = None
    """Their priority now, aging and boosts included."""
    worker: str | None = None
    """Held by this worker now: a job that has no lease has no worker."""
    error: str | None = None
    """Found in the last error, whatever the case."""
    is_template: bool | None = None
    is_recurring: bool | None = None

    def __post_init__(self) -> None:
        """Refuse what no job could have; naming every state is treated as naming none, which is cheaper."""
        object.__setattr__(self, "states", tuple(_state_filter(one) for one in _listed(self.states)))
        if {one.state for one in self.state_filters if one.reasons is None} == set(JobState):
            object.__setattr__(self, "states", ())
        for name in (*self.tasks, *self.lanes):
            check_text("task" if name in self.tasks else "lane", name, MAX_NAME)
        for field, limit in _TEXTS.items():
            value = getattr(self, field)
            if value is not None:
                check_text(field, value, limit)
        if self.parent_id is not None:
            check_range("parent_id", self.parent_id, 1, MAX_JOB)
        if self.priority is not None:
            check_range("priority", self.priority, -INT32 - 1, INT32)
        if self.since is not None:
            check_instant("since", self.since)

    @property
    def state_filters(self) -> tuple[StateFilter, ...]:
        """The states as they were read."""
        return cast("tuple[StateFilter, ...]", self.states)

    @property
    def own_job(self) -> int | None:
        """The job whose own UUID is asked for as a correlation id."""
        return None if self.correlation_id is None else own_job(self.correlation_id)

    @property
    def is_counted(self) -> bool:
        """Whether the counts alone show how many jobs there are: nothing but states, tasks and lanes is asked for."""
        counted = {"states", "tasks", "lanes"}
        return all(getattr(self, one.name) is None for one in fields(self) if one.name not in counted)
