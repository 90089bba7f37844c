"""The job or request being worked on, for code that is called without being told."""

from __future__ import annotations

from contextvars import ContextVar
from typing import NamedTuple


class CurrentJob(NamedTuple):
    """What child jobs, log lines and breakers take from the job whose handler they come from."""

    id: int
    task: str
    attempt: int
    correlation_id: str | None
    token: int
    """The lease its run holds: the right to speak for the job."""


current_job: ContextVar[CurrentJob | None] = ContextVar("windlass_current_job", default=None)
current_request: ContextVar[str | None] = ContextVar("windlass_current_request", default=None)
"""The id of the HTTP request that is being answered."""
