"""The interval scheduler's word for where one job is: our names, but what has run or comes back is never `pending`."""

from __future__ import annotations

from windlass.core.filter import StateFilter
from windlass.core.job import JobState, WaitReason

FRESH = frozenset({WaitReason.NEW, WaitReason.OPERATOR})
"""Why a pending job waits that has not run since it was made or started afresh."""
_OTHERS = frozenset(WaitReason) - FRESH


def status_of(state: JobState, reason: WaitReason | None) -> JobState:
    """Return the status of a job in this state for this reason."""
    return JobState.SCHEDULED if state is JobState.PENDING and reason in _OTHERS else state


def states_of(status: JobState) -> tuple[StateFilter, ...]:
    """Return which jobs have this status."""
    match status:
        case JobState.PENDING:
            return (StateFilter(JobState.PENDING, FRESH),)
        case JobState.SCHEDULED:
            return (StateFilter(JobState.SCHEDULED), StateFilter(JobState.PENDING, _OTHERS))
        case _:
            return (StateFilter(status),)
