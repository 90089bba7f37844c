"""Which jobs somebody means."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple, cast

from windlass.core.checks import check_instant, check_range, check_text
from windlass.core.ids import MAX_JOB, parse_job_id
from windlass.core.job import MAX_KEY, MAX_NAME, JobState, WaitReason
from windlass.errors import InvalidInput

MAX_SEARCH = 200


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
    """Read a correlation id as a job's own UUID; a plain number may be somebody's correlation id."""
    return None if correlation_id.isdecimal() else parse_job_id(correlation_id)


@dataclass(frozen=True, slots=True, kw_only=True)
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
    is_template: bool | None = None
    is_recurring: bool | None = None

    def __post_init__(self) -> None:
        """Refuse what no job could have; every state is as good as none named, and cheaper to look for."""
        object.__setattr__(self, "states", tuple(_state_filter(one) for one in _listed(self.states)))
        if {one.state for one in self.state_filters if one.reasons is None} == set(JobState):
            object.__setattr__(self, "states", ())
        for name in (*self.tasks, *self.lanes):
            check_text("task" if name in self.tasks else "lane", name, MAX_NAME)
        for field, limit in (("subject", MAX_KEY), ("correlation_id", MAX_KEY), ("search", MAX_SEARCH)):
            value = getattr(self, field)
            if value is not None:
                check_text(field, value, limit)
        if self.parent_id is not None:
            check_range("parent_id", self.parent_id, 1, MAX_JOB)
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
        """Whether the counts alone say how many jobs there are: nothing but states, tasks and lanes is asked for."""
        rest = (self.subject, self.correlation_id, self.parent_id, self.search, self.since, self.is_template, self.is_recurring)
        return all(value is None for value in rest)
