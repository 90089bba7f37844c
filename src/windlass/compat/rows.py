"""Jobs and dead letters as the async jobs system's tables show them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

from windlass.core.ids import job_uuid
from windlass.core.job import RETRIED, DeadLetter, Job, JobState
from windlass.core.retry import most_attempts

DEFAULT_PRIORITY = 100


class LegacyJob(NamedTuple):
    """A row of the async jobs system's `jobs` table."""

    id: int
    type: str
    payload: Mapping[str, Any]
    status: str
    priority: int
    attempts: int
    max_attempts: int
    scheduled_at: datetime
    """The planned time, which retries leave."""
    run_at: datetime
    started_at: datetime | None
    completed_at: datetime | None
    error_message: str | None
    last_error: str | None
    last_error_at: datetime | None
    correlation_id: str
    parent_job_id: int | None
    created_by: str | None
    dedup_key: str | None
    created_at: datetime
    updated_at: datetime


class LegacyLetter(NamedTuple):
    """A row of the async jobs system's `dead_letter_jobs` table."""

    id: int
    original_job: Mapping[str, Any]
    error_message: str
    error_details: Mapping[str, Any] | None
    died_at: datetime
    acknowledged: bool
    acknowledged_by: str | None
    acknowledged_at: datetime | None


def status_of(job: Job) -> str:
    """Name a state as the async jobs system does; paused and cancelled keep their own."""
    if job.state is JobState.SCHEDULED:
        return "failed" if job.wait_reason in RETRIED else "pending"
    return {JobState.RUNNING: "processing", JobState.FAILED: "dead"}.get(job.state, job.state.value)


def job_row(job: Job) -> LegacyJob:
    """Show a job as the async jobs system does."""
    return LegacyJob(
        id=job.id,
        type=job.task,
        payload=job.payload,
        status=status_of(job),
        priority=DEFAULT_PRIORITY - job.priority,
        attempts=job.attempt,
        max_attempts=most_attempts(job.max_attempts, job.retry),
        scheduled_at=job.slot_at or job.run_at,
        run_at=job.run_at,
        started_at=job.started_at,
        completed_at=job.closed_at,
        error_message=job.last_error,
        last_error=job.last_error,
        last_error_at=job.last_error_at,
        correlation_id=job.correlation_id or str(job_uuid(job.id)),
        parent_job_id=job.parent_id,
        created_by=job.created_by,
        dedup_key=job.unique_key,
        created_at=job.created_at,
        updated_at=job.updated_at,
    )


def letter_row(letter: DeadLetter) -> LegacyLetter:
    """Show a dead letter as the async jobs system does; one whose job came back counts as acknowledged."""
    job = letter.original_job
    return LegacyLetter(
        id=letter.id,
        original_job={**job, "priority": DEFAULT_PRIORITY - job["priority"]},
        error_message=letter.error,
        error_details=letter.details,
        died_at=letter.died_at,
        acknowledged=letter.acknowledged_at is not None or letter.closed_at is not None,
        acknowledged_by=letter.acknowledged_by,
        acknowledged_at=letter.acknowledged_at,
    )
