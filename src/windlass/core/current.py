"""The job or request being worked on, for code that is called without being told."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple


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
