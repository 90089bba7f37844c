"""The fields and statuses of a job as the priority crawl queue shows them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from enum import StrEnum

from windlass.core.filter import StateFilter
from windlass.core.job import CLOSED, RETRIED, Count, Job, JobState, WaitReason
from windlass.core.retry import Profile, RetrySpec

CRAWL = "crawl"
"""The task whose jobs this face shows."""


class Status(StrEnum):
    """The statuses that the priority crawl queue documents."""

    QUEUED = "queued"
    CRAWLING = "crawling"
    SUCCESS = "success"
    FAILED = "failed"


class Shown(StrEnum):
    """Every status a job may be shown with: the crawl queue's, and two that keep their name."""

    QUEUED = "queued"
    CRAWLING = "crawling"
    SUCCESS = "success"
    FAILED = "failed"
    PAUSED = "paused"
    CANCELLED = "cancelled"


_BY_STATE = {
    JobState.PENDING: Shown.QUEUED,
    JobState.SCHEDULED: Shown.QUEUED,
    JobState.RUNNING: Shown.CRAWLING,
    JobState.COMPLETED: Shown.SUCCESS,
    JobState.FAILED: Shown.FAILED,
    JobState.PAUSED: Shown.PAUSED,
    JobState.CANCELLED: Shown.CANCELLED,
}
STATE_OF: Mapping[Status, JobState] = {
    Status.QUEUED: JobState.PENDING,
    Status.CRAWLING: JobState.RUNNING,
    Status.SUCCESS: JobState.COMPLETED,
    Status.FAILED: JobState.FAILED,
}
"""Where an override leads."""


def shown_as(state: JobState, reason: WaitReason | None) -> Shown:
    """Return which status a job has: one that waits for another try counts as failed until it is due."""
    return Shown.FAILED if _waits_again(state, reason) else _BY_STATE[state]


def states_shown_as(status: Shown) -> tuple[StateFilter, ...]:
    """Return which jobs are shown with a status."""
    by_state = [StateFilter(state) for state, word in _BY_STATE.items() if word is status and state is not JobState.SCHEDULED]
    if status is Shown.QUEUED:
        by_state.append(StateFilter(JobState.SCHEDULED, frozenset(WaitReason) - RETRIED))
    if status is Shown.FAILED:
        by_state.append(StateFilter(JobState.SCHEDULED, RETRIED))
    return tuple(by_state)


def counts_by_status(counts: Iterable[Count]) -> dict[Shown, int]:
    """Add up counts by the status their jobs are shown with."""
    found = dict.fromkeys(Shown, 0)
    for one in counts:
        found[shown_as(one.state, one.wait_reason)] += one.jobs
    return found


def failed_runs(job: Job) -> int:
    """Count the runs that failed since the job's last fresh start; `attempt` also counts the one that goes on or went well."""
    has_other = job.state in {JobState.RUNNING, JobState.COMPLETED} or (job.state is JobState.CANCELLED and _was_running(job))
    return max(0, job.attempt - has_other)


def most_retries(job: Job, profiles: Mapping[str, Profile]) -> int:
    """Return how often a job may be tried again after its first run."""
    most = job.max_attempts
    return (profiles[RetrySpec.decode(job.retry).profile].max_attempts if most is None else most) - 1


def duration_ms(job: Job) -> int | None:
    """Return how long the job's last run took; nothing while one goes on."""
    if job.state is JobState.RUNNING or job.started_at is None or job.finished_at is None or job.finished_at < job.started_at:
        return None
    return (job.finished_at - job.started_at) // timedelta(milliseconds=1)


def subject_shown(subject: str | None) -> int | str | None:
    """Show a subject as the number it is; jobs of other faces may be about something with a name."""
    is_number = subject is not None and subject.isascii() and subject.isdigit() and str(int(subject)) == subject
    return int(subject) if is_number and subject is not None else subject


def goes_on(job: Job) -> bool:
    """Whether a schedule is enabled and has not ended."""
    return job.is_enabled and job.state not in CLOSED


def waits_again(job: Job) -> bool:
    """Whether a job waits for another try."""
    return _waits_again(job.state, job.wait_reason)


def _waits_again(state: JobState, reason: WaitReason | None) -> bool:
    return state is JobState.SCHEDULED and reason in RETRIED


def _was_running(job: Job) -> bool:
    return job.started_at is not None and (job.last_error_at is None or job.last_error_at < job.started_at)
