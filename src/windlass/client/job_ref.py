"""The ways to name a job."""

from __future__ import annotations

from uuid import UUID

from windlass.core.ids import parse_job_id
from windlass.core.job import Enqueued, Job
from windlass.errors import JobNotFound

JobRef = int | str | UUID | Enqueued | Job
"""A job's number or UUID, what enqueue answered, or the job itself."""


def number_of(ref: JobRef) -> int:
    """Find the job's number; raises JobNotFound for what no job can be called."""
    if isinstance(ref, Enqueued | Job):
        return ref.id
    number = parse_job_id(str(ref) if isinstance(ref, UUID) else ref) if isinstance(ref, int | str | UUID) else None
    if number is None:
        raise JobNotFound(ref)
    return number
