"""What a server answers, as frozen records; fields that a newer server adds are left out."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from windlass.core.job import JobState
from windlass.core.record import record
from windlass.core.topic import Topic
from windlass.wire.jobs import ExecutionOut, ItemOut, JobOut, QueueStatsOut, TracedOut
from windlass.wire.operations import (
    BreakerEventOut,
    BreakerOut,
    CanaryOut,
    CountsOut,
    DrainOut,
    GateOut,
    GroupOut,
    LaneOut,
    LetterOut,
    NoteOut,
    TaskOut,
)

# What the server sends as it is.
RemoteExecution = ExecutionOut
RemoteQueueStats = QueueStatsOut
RemoteLetterGroup = GroupOut
RemoteLetterCounts = CountsOut
RemoteCanary = CanaryOut
RemoteBreaker = BreakerOut
RemoteBreakerEvent = BreakerEventOut
RemoteLane = LaneOut
RemoteGate = GateOut
RemoteDrain = DrainOut
TracedJob = TracedOut
RemoteItem = ItemOut


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
    """The result of its newest run; only `get` returns it."""
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
    """The payload its job comes back with, if it was changed; lists leave it out."""
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
class RemoteBulk:
    """How many were meant, changed, refused and missing."""

    matched: int
    changed: int
    refused: int
    missing: int = 0
    dry_run: bool = False


@record(kw_only=True)
class BreakerPage:
    """Some breakers by name."""

    breakers: tuple[RemoteBreaker, ...]
    total: int
    next: str | None = None


@record(kw_only=True)
class RemoteTask(TaskOut):
    """A task that some process declared, or that was paused before any did."""

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
class RemoteChange:
    """What to look at again, and how many jobs there are of each state."""

    topics: tuple[Topic, ...]
    at: datetime
    counts: Mapping[JobState, int]


@record(kw_only=True)
class ItemPage:
    """Some items, in the order they came."""

    items: tuple[RemoteItem, ...]
    total: int
    is_total_exact: bool = True
    """Otherwise there are at least `total`."""
    next: int | None = None
