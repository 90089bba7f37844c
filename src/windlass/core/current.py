"""The job or request being worked on, for code that is called without being told."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple

from windlass.core.ids import job_uuid

if TYPE_CHECKING:
    from windlass.core.job import Claimed


class CurrentJob(NamedTuple):
    """What child jobs, log lines and breakers take from the job whose handler they come from."""

    id: int
    task: str
    attempt: int
    given_correlation_id: str | None
    token: int
    """The lease its run holds: the right to speak for the job."""

    @classmethod
    def of(cls, job: Claimed) -> CurrentJob:
        """Take what is needed from a claimed job."""
        return cls(job.id, job.task, job.attempt, job.correlation_id, job.token)

    @property
    def correlation_id(self) -> str:
        """What ties the job to others: what it was given, else its own UUID."""
        return self.given_correlation_id or str(job_uuid(self.id))

    @property
    def log_fields(self) -> dict[str, Any]:
        """What every log line about the job carries."""
        return {"job_id": self.id, "task": self.task, "attempt": self.attempt, "correlation_id": self.correlation_id}


current_job: ContextVar[CurrentJob | None] = ContextVar("windlass_current_job", default=None)
current_request: ContextVar[str | None] = ContextVar("windlass_current_request", default=None)
"""The id of the HTTP request that is being answered."""

run_tasks: ContextVar[set[Any] | None] = ContextVar("windlass_run_tasks", default=None)
"""The asyncio tasks that the current run has started; they end with it."""


@contextmanager
def detached() -> Iterator[None]:
    """Let tasks started in this block outlive the run that starts them: those of a client that later runs share."""
    before = run_tasks.set(None)
    try:
        yield
    finally:
        run_tasks.reset(before)
