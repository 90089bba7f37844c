"""Waiting for a job over HTTP: when to look again, and what its end means."""

from __future__ import annotations

import time
from typing import Any

from windlass.core.durations import Duration
from windlass.core.job import CLOSED, JobState
from windlass.errors import InvalidInput, JobCancelled, JobFailed, WaitTimeout
from windlass.http_client.ask import Ask, seconds
from windlass.http_client.jobs import execution_page
from windlass.http_client.records import ExecutionPage, RemoteJob

_FIRST_LOOK_S = 0.05
_LONGEST_LOOK_S = 2.0


class Waiting:
    """One wait, for either client."""

    def __init__(self, timeout: Duration | None) -> None:
        """Begin to count."""
        self._ends_at = None if timeout is None else time.monotonic() + seconds(timeout, "timeout")
        self._pause_s = _FIRST_LOOK_S

    def is_over(self, job: RemoteJob) -> bool:
        """Whether the job has ended; raises InvalidInput for one that never does."""
        if job.state in CLOSED:
            return True
        if job.cadence is not None:
            raise InvalidInput("job", job.number, "is recurring: it does not end, so its result cannot be awaited")
        return False

    def pause_s(self, job: RemoteJob) -> float:
        """Return how long to sleep before the next look; raises WaitTimeout when the time is over."""
        left = _LONGEST_LOOK_S if self._ends_at is None else self._ends_at - time.monotonic()
        if left <= 0:
            raise WaitTimeout(job.number, job.state)
        pause = min(self._pause_s, left)
        self._pause_s = min(self._pause_s * 1.5, _LONGEST_LOOK_S)
        return pause

    @staticmethod
    def last_run(job: RemoteJob) -> Ask[ExecutionPage] | None:
        """Return the request for the run whose stack trace `result_of` needs, if the job has failed."""
        return execution_page(job.id, limit=1) if job.state is JobState.FAILED else None

    @staticmethod
    def result_of(job: RemoteJob, last_run: ExecutionPage | None = None) -> Any:
        """Return the result of a job that has ended, or raise why there is none."""
        if job.state is JobState.FAILED:
            runs = () if last_run is None else last_run.executions
            raise JobFailed(job.number, "failed", job.last_error, runs[0].stack_trace if runs else None)
        if job.state is JobState.CANCELLED:
            raise JobCancelled(job.number, "was cancelled", _cancel_reason(job))
        return job.result


def _cancel_reason(job: RemoteJob) -> str | None:
    """Find the reason that the job was cancelled with; an error of a run before is not it."""
    return job.last_error if job.last_error is not None and job.last_error_at == job.cancelled_at else job.done_reason
