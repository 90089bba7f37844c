"""The job or request being worked on, for code that does not get it as an argument."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple

from windlass.core.ids import job_uuid
from windlass.core.traceparent import trace_id_of

if TYPE_CHECKING:
    from windlass.core.job import Claimed


class CurrentJob(NamedTuple):
    """What child jobs, log lines and breakers take from the job whose handler they come from."""

    id: int
    task: str
    attempt: int
    given_correlation_id: str | None
    token: int
    """The lease of its run, which writes about the job need."""
    traceparent: str | None = None

    @classmethod
    def of(cls, job: Claimed) -> CurrentJob:
        """Take what is needed from a claimed job."""
        return cls(job.id, job.task, job.attempt, job.correlation_id, job.token, job.traceparent)

    @property
    def correlation_id(self) -> str:
        """What ties the job to others: what it was given, else its own UUID."""
        return self.given_correlation_id or str(job_uuid(self.id))

    @property
    def log_fields(self) -> dict[str, Any]:
        """What every log line about the job carries."""
        fields = {"job_id": self.id, "task": self.task, "attempt": self.attempt, "correlation_id": self.correlation_id}
        return fields if self.traceparent is None else {**fields, "trace_id": trace_id_of(self.traceparent)}


class RunningJob:
    """A run that goes on, as far as code below the worker needs it."""

    tasks: set[Any] | None = None
    """The asyncio tasks that its handler has started and that end with it; None before it starts and once it has ended."""

    def __init__(self, job: Claimed) -> None:
        """Hold the job of the run."""
        self.job = job


current_run: ContextVar[RunningJob | None] = ContextVar("windlass_current_run", default=None)


def current_job() -> CurrentJob | None:
    """Return the job whose handler calls, if one does."""
    run = current_run.get()
    return None if run is None else CurrentJob.of(run.job)


current_request: ContextVar[str | None] = ContextVar("windlass_current_request", default=None)
"""The id of the HTTP request that is being answered."""

_is_detached: ContextVar[bool] = ContextVar("windlass_is_detached", default=False)


def run_tasks() -> set[Any] | None:
    """Return where the current run notes the asyncio tasks that it starts, if they end with it."""
    run = current_run.get()
    return None if run is None or _is_detached.get() else run.tasks


@contextmanager
def detached() -> Iterator[None]:
    """Let tasks started in this block outlive the run that starts them: those of a client that later runs share."""
    before = _is_detached.set(True)
    try:
        yield
    finally:
        _is_detached.reset(before)
