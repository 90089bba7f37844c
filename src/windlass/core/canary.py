"""A requeue that tries a few letters first, and brings back the rest once those have succeeded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from windlass.core.job import Job, JobState, RunReason, RunStatus
from windlass.core.payload import decode
from windlass.core.record import record
from windlass.core.related import JobRun

MOST_CANARIES = 100


class CanaryState(StrEnum):
    """Where a canary requeue is."""

    TRYING = "trying"
    """The first letters run; the others wait."""
    REQUEUING = "requeuing"
    """The first have succeeded; the others are brought back, batch by batch."""
    DONE = "done"
    STOPPED = "stopped"
    """One of the first has failed; the others stay where they are."""
    CANCELLED = "cancelled"


ACTIVE = frozenset({CanaryState.TRYING, CanaryState.REQUEUING})


class CanaryRun(NamedTuple):
    """A letter that goes first, the job that came back for it, and how many runs that job had begun by then."""

    letter_id: int
    job_id: int
    runs: int


@record
class Canary:
    """A requeue of many letters, of which the first `size` are tried before the others."""

    id: int
    state: CanaryState
    task: str | None
    fingerprint: str | None
    size: int
    runs_json: str
    succeeded: int
    """How many of the first have succeeded."""
    requeued: int
    """How many letters were brought back, the first among them."""
    refused: int
    after_letter: int
    until_letter: int
    reason: str | None
    """Why it ended before its time."""
    created_by: str
    created_at: datetime
    updated_at: datetime
    ended_at: datetime | None

    @property
    def runs(self) -> tuple[CanaryRun, ...]:
        """The letters that go first."""
        return tuple(CanaryRun(*one) for one in decode(self.runs_json, field="runs"))


class CanaryVerdict(NamedTuple):
    """The results of the first letters of a canary requeue so far."""

    succeeded: int
    failure: str | None = None


def judge(tries: Sequence[CanaryRun], jobs: Mapping[int, Job], runs: Sequence[JobRun]) -> CanaryVerdict:
    """Count the tries that have succeeded, or name the first that has failed.

    A failed run counts at once, whatever retries are left: a canary is to show that the cause is gone. A lost lease does not
    count, because the worker may have been stopped.
    """
    succeeded = 0
    for one in tries:
        later = [run for run in runs if run.job_id == one.job_id and run.number > one.runs]
        job = jobs.get(one.job_id)
        if any(run.status is RunStatus.COMPLETED for run in later) or (job is not None and job.state is JobState.COMPLETED):
            succeeded += 1
        elif (why := _failure(one, job, later)) is not None:
            return CanaryVerdict(succeeded, why)
    return CanaryVerdict(succeeded)


def _failure(one: CanaryRun, job: Job | None, later: Sequence[JobRun]) -> str | None:
    who = f"job {one.job_id} of dead letter {one.letter_id}"
    if job is None:
        return f"{who} is gone, and nothing shows how it ended"
    failed = next((run for run in later if run.status is RunStatus.FAILED and run.reason is not RunReason.LEASE_EXPIRED), None)
    if failed is not None:
        return f"{who} failed again: {failed.error or failed.reason}"
    if job.state is JobState.FAILED:
        return f"{who} failed again: {job.last_error or 'no message'}"
    return f"{who} was cancelled" if job.state is JobState.CANCELLED else None
