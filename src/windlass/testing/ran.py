"""One run, as a test sees it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from windlass.core.job import JobState, RunReason, RunStatus
from windlass.core.record import record


@record
class Ran:
    """A job that `run_all` has run, once."""

    job_id: int
    task: str
    arguments: Mapping[str, Any]
    """The payload's JSON values."""
    attempt: int
    status: RunStatus
    """How the run ended."""
    reason: RunReason | None
    """Why it did not complete."""
    state: JobState
    """Where the run left the job: a failed one that is tried again is scheduled."""
    result: Any = None
    error: BaseException | None = None
    """What the handler raised; nothing if it was cut short."""
    message: str | None = None
    """The error as text, as the job keeps it."""
