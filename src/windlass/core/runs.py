"""How runs went: since the beginning, minute by minute, and of one job."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from datetime import datetime
from typing import NamedTuple

from windlass.core.histogram import Histogram, merge
from windlass.core.job import RETRIED, Count, JobState, RunReason, RunStatus
from windlass.core.record import record

UNCOUNTED = frozenset({RunReason.RELEASED, RunReason.SNOOZED})
"""Reasons of runs that no rate and no percentile counts."""
_MINUTE_MS = 60_000


class Total(NamedTuple):
    """All runs of a task that ended in one way, since the beginning."""

    task: str
    status: RunStatus
    reason: RunReason | None
    runs: int
    wait_ms: int
    duration_ms: int

    @property
    def is_counted(self) -> bool:
        """Whether these runs count in rates."""
        return self.reason not in UNCOUNTED


@record
class Minute:
    """The runs that ended within one minute; released and snoozed ones are left out."""

    minute: datetime
    completed: int = 0
    failed: int = 0
    cancelled: int = 0
    wait_ms: int = 0
    duration_ms: int = 0
    waits: Histogram = field(default_factory=Histogram)
    runs: Histogram = field(default_factory=Histogram)

    @property
    def finished(self) -> int:
        """How many runs ended, however they did."""
        return self.completed + self.failed + self.cancelled


def add_minutes(minutes: Iterable[Minute]) -> list[Minute]:
    """Add up what is known of each minute, oldest first."""
    parts: dict[datetime, list[Minute]] = {}
    for one in minutes:
        parts.setdefault(one.minute, []).append(one)
    return [_sum(minute, parts[minute]) for minute in sorted(parts)]


def span(minutes: Sequence[Minute]) -> Minute | None:
    """Add up a stretch of minutes; None when there is nothing in it."""
    return _sum(minutes[0].minute, minutes) if minutes else None


def _sum(minute: datetime, parts: Sequence[Minute]) -> Minute:
    return Minute(
        minute,
        sum(one.completed for one in parts),
        sum(one.failed for one in parts),
        sum(one.cancelled for one in parts),
        sum(one.wait_ms for one in parts),
        sum(one.duration_ms for one in parts),
        merge(one.waits for one in parts),
        merge(one.runs for one in parts),
    )


@record
class JobStats:
    """How the kept runs of one job went; runs that were released or snoozed count nowhere."""

    total_executions: int
    successful_runs: int
    failed_runs: int
    average_duration_ms: float | None
    last_execution_at: datetime | None
    next_scheduled_at: datetime | None

    @property
    def success_rate(self) -> float:
        """Completed runs among all that ended; 0 when none did."""
        return self.successful_runs / self.total_executions if self.total_executions else 0.0


@record
class SchedulerMetrics:
    """Jobs by state now, and runs since the beginning."""

    jobs: Mapping[JobState, int]
    executions: int
    average_duration_ms: float | None
    success_rate: float
    lost_leases: int


def scheduler_metrics(counts: Sequence[Count], totals: Sequence[Total]) -> SchedulerMetrics:
    """Add up what the scheduler shows."""
    counted = [one for one in totals if one.is_counted]
    runs = sum(one.runs for one in counted)
    completed = sum(one.runs for one in counted if one.status is RunStatus.COMPLETED)
    decided = completed + sum(one.runs for one in counted if one.status is RunStatus.FAILED)
    return SchedulerMetrics(
        jobs={state: sum(one.jobs for one in counts if one.state is state) for state in JobState},
        executions=runs,
        average_duration_ms=sum(one.duration_ms for one in counted) / runs if runs else None,
        success_rate=completed / decided if decided else 0.0,
        lost_leases=sum(one.runs for one in totals if one.reason is RunReason.LEASE_EXPIRED),
    )


@record
class QueueStats:
    """Counts of the queue under the names of the async jobs system: `failed` will be tried again."""

    pending: int
    """Due, waiting for a slot."""
    processing: int
    failed: int
    scheduled: int
    """Waiting for their time: delayed, snoozed or recurring."""
    oldest_pending_at: datetime | None
    now: datetime

    @property
    def oldest_pending_minutes(self) -> int:
        """How many whole minutes the job that has been due the longest has waited."""
        if self.oldest_pending_at is None:
            return 0
        return max(0, int((self.now - self.oldest_pending_at).total_seconds() * 1000) // _MINUTE_MS)


def queue_stats(counts: Sequence[Count], oldest_pending_at: datetime | None, now: datetime) -> QueueStats:
    """Add up the queue."""
    scheduled = [one for one in counts if one.state is JobState.SCHEDULED]
    failed = sum(one.jobs for one in scheduled if one.wait_reason in RETRIED)
    pending = sum(one.jobs for one in counts if one.state is JobState.PENDING)
    running = sum(one.jobs for one in counts if one.state is JobState.RUNNING)
    waiting = sum(one.jobs for one in scheduled) - failed
    return QueueStats(pending, running, failed, waiting, oldest_pending_at, now)


class Priorities(NamedTuple):
    """How many pending jobs there are of each priority, highest first; not exact when there are too many to look at."""

    jobs: dict[int, int]
    is_exact: bool
