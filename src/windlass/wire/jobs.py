"""Jobs, their runs and what they have found, as the HTTP API shows them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from pydantic import Field

from windlass.core.job import JobState, RunReason, RunStatus, UniqueScope, WaitReason
from windlass.wire import answer

Count = Annotated[int, Field(ge=0)]


@answer
class JobOut:
    """A job. `status` is the interval scheduler's name for `state`; times are UTC."""

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
    """How many of `interval_type`; its name is fixed by the interval scheduler's API."""
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


@answer
class ExecutionOut:
    """One run of a job; what ends a run is null while it goes on."""

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


@answer
class TracedRunOut:
    """A run of a traced job that has ended."""

    number: int
    attempt: int
    status: RunStatus
    reason: RunReason | None = None
    worker: str
    started_at: datetime
    finished_at: datetime
    wait_ms: int
    duration_ms: int
    error: str | None = None


@answer
class TracedOut:
    """A job of a correlation; GET its number for the rest."""

    id: UUID
    number: int
    task: str
    lane: str
    state: JobState
    wait_reason: WaitReason | None = None
    parent_id: UUID | None = None
    """The job that enqueued it, which may belong to another correlation."""
    depth: int
    """How far it is from a job without a parent here; children follow their parent."""
    attempts: int
    created_at: datetime
    run_at: datetime
    started_at: datetime | None = None
    finished_at: datetime | None = None
    """When its last run ended."""
    last_error: str | None = None
    closed_at: datetime | None = None
    """When it was over for good."""
    wait_ms: int | None = None
    """How long it waited from the time it was due until its first run; None before that."""
    run_ms: int
    """How long it has run in all, the run that goes on included."""
    executions: int
    """How many runs have begun."""
    worker: str | None = None
    """The worker that runs it now."""
    runs: tuple[TracedRunOut, ...]
    """The newest ended runs, at most 10, the oldest first."""


@answer
class ItemOut:
    """One item, as it came."""

    id: int
    collection: str
    key: str
    """What distinguishes it from the other items of its collection."""
    job_id: UUID
    """The job that found it first."""
    data: Mapping[str, Any]
    created_at: datetime


@answer
class QueueStatsOut:
    """Counts of the queue under the async jobs system's names: `failed` will be tried again."""

    pending: int
    """Due, waiting for a slot."""
    processing: int
    failed: int
    scheduled: int
    """Waiting for their time: delayed, snoozed or recurring; not among `pending`."""
    oldest_pending_minutes: int
