"""What a server answers, as frozen records; fields that a newer server adds are left out."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from windlass.core.breaker import BreakerReason, BreakerState
from windlass.core.job import JobState, RunReason, RunStatus, WaitReason
from windlass.core.record import record
from windlass.core.topic import Topic
from windlass.wire import CanaryOut, ExecutionOut, JobOut, LetterOut, NoteOut


@record(kw_only=True)
class RemoteEnqueued:
    """The job that one entry of `enqueue_many` led to."""

    id: UUID
    number: int
    duplicate: bool = False
    """Whether it was there before and holds the unique key."""


@record(kw_only=True)
class RemoteJob(JobOut):
    """A job; times are UTC."""

    result: Any = None
    """What its newest run gave; only `get` brings it."""
    duplicate: bool = False
    """After an enqueue: whether the job was there before."""


@record(kw_only=True)
class JobPage:
    """Some jobs of a list."""

    jobs: tuple[RemoteJob, ...]
    total: int
    is_total_exact: bool = True
    """Otherwise there are at least `total`."""
    is_complete: bool = True
    """Otherwise only the newest jobs were looked at, or sorted."""
    next_cursor: str | None = None


@record(kw_only=True)
class BulkEnqueued:
    """What `enqueue_many` led to, in the order of what was sent."""

    jobs: tuple[RemoteEnqueued, ...]
    enqueued: int
    duplicates: int


RemoteExecution = ExecutionOut


@record(kw_only=True)
class ExecutionPage:
    """Some runs of a job."""

    executions: tuple[RemoteExecution, ...]
    total: int


@record(kw_only=True)
class RemoteJobStats:
    """How the kept runs of one job went."""

    total_executions: int
    successful_runs: int
    failed_runs: int
    average_duration_ms: float | None = None
    last_execution_at: datetime | None = None
    next_scheduled_at: datetime | None = None
    success_rate: float


@record(kw_only=True)
class RemoteQueueStats:
    """The queue at a glance, in the async jobs system's words: `failed` will be tried again."""

    pending: int
    processing: int
    failed: int
    scheduled: int
    """Waiting for their time; not among `pending`."""
    oldest_pending_minutes: int


@record(kw_only=True)
class RunTotals:
    """Runs since the beginning."""

    total: int
    average_duration_ms: float | None = None
    success_rate: float


@record(kw_only=True)
class Metrics:
    """Jobs by state now, and runs since the beginning."""

    jobs: Mapping[JobState, int]
    executions: RunTotals
    last_check_at: datetime | None = None
    last_metrics_update: datetime | None = None
    stale_locks_cleared: int


@record(kw_only=True)
class RemoteDeadLetter(LetterOut):
    """The record of a job that failed for good."""

    original_job: Mapping[str, Any] | None = None
    """The job as it was when it died; lists leave it out."""
    error_details: Mapping[str, Any] | None = None
    requeued_id: int | None = None
    """After a requeue: the number of the job that came back."""
    edited_payload: Mapping[str, Any] | None = None
    """What its job comes back with, if somebody has changed that; lists leave it out."""
    notes: tuple[NoteOut, ...] = ()
    """What people wrote about it; lists leave it out."""


@record(kw_only=True)
class DeadLetterPage:
    """Some dead letters, newest death first."""

    dead_letters: tuple[RemoteDeadLetter, ...]
    total: int
    is_total_exact: bool = True
    next: str | None = None


@record(kw_only=True)
class RemoteLetterGroup:
    """Deaths of the same kind, with the newest as an example."""

    fingerprint: str
    letters: int
    deaths: int
    last_died_at: datetime
    newest_id: int
    task: str
    error_message: str
    in_hour: int = 0
    in_day: int = 0
    in_week: int = 0
    first_died_at: datetime | None = None
    version: str | None = None
    is_new: bool = False
    """Whether it first appeared with the newest version of the application."""


@record(kw_only=True)
class RemoteLetterCounts:
    """How many letters died lately, and how many nobody has dealt with."""

    hour: int
    day: int
    week: int
    open: int
    is_exact: bool = True


RemoteCanary = CanaryOut


@record(kw_only=True)
class RemoteBulk:
    """How many were meant and what became of them."""

    matched: int
    changed: int
    refused: int
    missing: int = 0
    dry_run: bool = False


@record(kw_only=True)
class RemoteBreaker:
    """A circuit breaker that has left closed at some time."""

    name: str
    state: BreakerState
    failures: int
    successes: int
    threshold: int
    open_seconds: float
    last_failure_at: datetime | None = None
    opened_at: datetime | None = None
    probe_at: datetime | None = None
    """When it is tried again; None while it is open for good."""
    half_opened_at: datetime | None = None
    probe_job_id: int | None = None
    is_forced: bool
    updated_at: datetime


@record(kw_only=True)
class BreakerPage:
    """Some breakers by name."""

    breakers: tuple[RemoteBreaker, ...]
    total: int
    next: str | None = None


@record(kw_only=True)
class RemoteBreakerEvent:
    """One change of a breaker."""

    id: int
    state: BreakerState
    reason: BreakerReason
    job_id: int | None = None
    at: datetime


@record(kw_only=True)
class RemoteLane:
    """A lane with its jobs by state."""

    name: str
    is_paused: bool
    paused_at: datetime | None = None
    paused_by: str | None = None
    counts: Mapping[JobState, int]
    """States without jobs are left out."""


@record(kw_only=True)
class RemoteGate:
    """A lane or task as a pause or resume left it."""

    name: str
    is_paused: bool
    paused_by: str | None = None
    is_changed: bool
    """False when it was so before."""


@record(kw_only=True)
class RemoteDrain:
    """A paused lane or task and what still runs in it; ask again until it is done."""

    name: str
    running: int
    is_settled: bool
    is_done: bool


@record(kw_only=True)
class RemoteTask:
    """A task that some process declared, or that was paused before any did."""

    name: str
    lane: str
    options: Mapping[str, Any]
    breaker: str | None = None
    is_declared: bool
    is_paused: bool
    paused_at: datetime | None = None
    paused_by: str | None = None
    first_seen_at: datetime
    seen_at: datetime
    counts: Mapping[JobState, int] | None = None
    """Its jobs by state; lists leave them out."""


@record(kw_only=True)
class TaskPage:
    """Some tasks by name."""

    tasks: tuple[RemoteTask, ...]
    total: int
    next: str | None = None


@record(kw_only=True)
class RemoteWorker:
    """A process that runs jobs."""

    id: str
    kind: str
    host: str
    pid: int
    version: str
    running: int
    started_at: datetime
    seen_at: datetime
    stopped_at: datetime | None = None
    is_online: bool
    loop_blocks: int = 0
    app_version: str | None = None
    paused_at: datetime | None = None
    paused_by: str | None = None
    cpu_percent: int | None = None
    memory_mb: int | None = None


@record(kw_only=True)
class TracedRun:
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


@record(kw_only=True)
class TracedJob:
    """A job of a correlation; children follow their parent, one deeper."""

    id: UUID
    number: int
    task: str
    lane: str
    state: JobState
    wait_reason: WaitReason | None = None
    parent_id: UUID | None = None
    depth: int
    attempts: int
    created_at: datetime
    run_at: datetime
    started_at: datetime | None = None
    finished_at: datetime | None = None
    last_error: str | None = None
    closed_at: datetime | None = None
    wait_ms: int | None = None
    """How long it waited from the time it was due until its first run."""
    run_ms: int = 0
    """How long it has run in all."""
    executions: int = 0
    worker: str | None = None
    runs: tuple[TracedRun, ...] = ()
    """The newest ended runs, the oldest first."""


@record(kw_only=True)
class RemoteChange:
    """What to look at again, and how many jobs there are of each state."""

    topics: tuple[Topic, ...]
    at: datetime
    counts: Mapping[JobState, int]


@record(kw_only=True)
class RemoteItem:
    """Something a worker has found, as it came."""

    id: int
    collection: str
    key: str
    """What tells it from the other items of its collection."""
    job_id: UUID
    """The job that found it first."""
    data: Mapping[str, Any]
    """Values under keys that look secret are hidden from viewers."""
    created_at: datetime


@record(kw_only=True)
class ItemPage:
    """Some items, in the order they came."""

    items: tuple[RemoteItem, ...]
    total: int
    is_total_exact: bool = True
    """Otherwise there are at least `total`."""
    next: int | None = None
