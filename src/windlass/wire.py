"""Jobs, runs and dead letters as the HTTP API shows them: written by the server, read by its client."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from pydantic import ConfigDict, Field

from windlass.core.canary import CanaryState
from windlass.core.job import JobState, RunReason, RunStatus, UniqueScope, WaitReason
from windlass.core.letter_page import LetterStatus
from windlass.core.record import record

Count = Annotated[int, Field(ge=0)]

# What has a default may be left out by other servers than ours; ours sends every field.
_SENT = ConfigDict(json_schema_serialization_defaults_required=True)


@record(kw_only=True)
class JobOut:
    """A job. `status` is the interval scheduler's word for `state`; times are UTC."""

    __pydantic_config__ = _SENT

    id: UUID
    number: int
    source_id: str | None = None
    """The subject."""
    source_name: str | None = None
    url: str | None = None
    status: JobState
    created_at: datetime
    updated_at: datetime
    started_at: datetime | None = None
    completed_at: datetime | None = None
    """When the job, or the last run of a recurring one, ended."""
    error_message: str | None = None
    interval_minutes: int | None = None
    """How many of `interval_type`, whatever its name says."""
    interval_type: str | None = None
    next_run_at: datetime | None = None
    """None while the job is paused, runs or is over."""
    is_paused: bool
    paused_at: datetime | None = None
    cancelled_at: datetime | None = None
    max_retries: Count
    retry_backoff_seconds: int | float
    current_retry_count: Count
    """Failed runs since the last fresh start."""
    lock_token: UUID | None = None
    """A digest of the lease's token: equal while the lease is the same, and good for nothing else."""
    lock_acquired_at: datetime | None = None
    metadata: dict[str, Any]
    schedule_time: str | None = None
    schedule_enabled: bool
    """Whether the job comes back by itself: recurring, and neither paused nor disabled."""

    task: str
    payload: dict[str, Any]
    """Values under keys that look secret are hidden from viewers."""
    lane: str
    priority: int
    base_priority: int
    state: JobState
    wait_reason: WaitReason | None = None
    run_at: datetime
    slot_at: datetime | None = None
    attempts: Count
    max_attempts: Count
    timeout_ms: int | None = None
    enabled: bool
    running_since: datetime | None = None
    last_run_at: datetime | None = None
    last_error: str | None = None
    last_error_at: datetime | None = None
    next_retry_at: datetime | None = None
    created_by: str | None = None
    last_cursor: str | None = None
    progress_count: int
    progress_message: str | None = None
    result_count: int
    target_count: int | None = None
    last_progress_at: datetime | None = None
    done_reason: str | None = None
    correlation_id: str
    traceparent: str | None = None
    """The W3C trace context it was enqueued in."""
    parent_id: UUID | None = None
    name: str | None = None
    unique_key: str | None = None
    unique_scope: UniqueScope | None = None
    subject: str | None = None
    item_key: list[str] | None = None
    collection: str | None = None
    description: str | None = None
    cadence: str | None = None
    """How it comes back; None for a job that runs once."""
    timezone: str | None = None
    fixed_rate: bool
    start_at: datetime | None = None
    worker: str | None = None
    lease_expires_at: datetime | None = None
    consecutive_failures: int
    executions: int
    """How many runs have begun."""


@record(kw_only=True)
class ExecutionOut:
    """One run of a job; what ends a run is null while it goes on."""

    __pydantic_config__ = _SENT

    id: UUID
    job_id: UUID
    execution_number: int
    status: RunStatus
    started_at: datetime
    completed_at: datetime | None = None
    duration_ms: int | None = None
    items_crawled: int
    items_indexed: int
    error_message: str | None = None
    stack_trace: str | None = None
    cpu_time_ms: int | None = None
    memory_peak_mb: int | None = None
    retry_attempt: int
    """0 is the first try."""
    metadata: dict[str, Any]
    attempt: int
    reason: RunReason | None = None
    error_type: str | None = None
    worker: str
    slot_at: datetime | None = None
    wait_ms: int
    log_excerpt: str | None = None
    result: Any = None
    stopped_at: datetime | None = None
    version: str | None = None
    """The version of the application in its worker, as long as the worker is listed."""


@record(kw_only=True)
class NoteOut:
    """What somebody wrote about a dead letter."""

    at: datetime
    by: str
    text: str


@record(kw_only=True)
class CanaryOut:
    """A requeue of many letters, of which the first are tried before the others."""

    __pydantic_config__ = _SENT

    id: int
    state: CanaryState
    task: str | None = None
    fingerprint: str | None = None
    size: int
    """How many go first."""
    succeeded: int
    """How many of those have succeeded."""
    requeued: int
    """How many letters were brought back in all."""
    refused: int
    reason: str | None = None
    """Why it stopped."""
    jobs: tuple[int, ...] = ()
    """The numbers of the jobs that go first."""
    created_by: str
    created_at: datetime
    updated_at: datetime
    ended_at: datetime | None = None


@record(kw_only=True)
class LetterOut:
    """The record of a job that failed for good, without the job itself."""

    __pydantic_config__ = _SENT

    id: int
    job_id: int
    """The number of the job that died."""
    task: str
    lane: str
    correlation_id: str | None = None
    error_message: str
    fingerprint: str
    """The same for deaths of the same kind."""
    deaths: int
    """How often the job has died since the letter was opened; a schedule that goes on may die again."""
    first_died_at: datetime
    died_at: datetime
    status: LetterStatus
    acknowledged: bool
    acknowledged_at: datetime | None = None
    acknowledged_by: str | None = None
    note: str | None = None
    """What was written with the acknowledgement."""
    closed_at: datetime | None = None
    closed_reason: str | None = None
    edited_by: str | None = None
    """Who changed the payload that its job comes back with."""
    edited_at: datetime | None = None
    version: str | None = None
    """The version of the application that the first death of this kind came from, if its worker named one."""
