"""The job or request being worked on, for code that is called without being told."""

from __future__ import annotations

from contextvars import ContextVar
from typing import NamedTuple


class CurrentJob(NamedTuple):
    """What child jobs and log lines take from the job that made them."""

    id: int
    task: str
    attempt: int
    correlation_id: str | None


current_job: ContextVar[CurrentJob | None] = ContextVar("windlass_current_job", default=None)
current_request: ContextVar[str | None] = ContextVar("windlass_current_request", default=None)
"""The id of the HTTP request that is being answered."""
