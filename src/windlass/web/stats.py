"""Statistics: of one job, of the scheduler, of the queue."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from fastapi import Request
from pydantic import BaseModel

from windlass.client.job_ref import number_of
from windlass.core.access import Role
from windlass.core.chore import Chore
from windlass.core.job import JobState
from windlass.core.record import shaped
from windlass.web.jobs import JobId
from windlass.web.request_context import context_of, reader_of
from windlass.web.route import Route
from windlass.wire.jobs import QueueStatsOut

_LOOKS = frozenset({"promote", "spawn", "reclaim"})
"""Chores that look for what is due or lost."""
_METRICS = frozenset({"fold"})
"""Chores that keep the counts."""


class JobStatsOut(BaseModel):
    """How the kept runs of one job went; released and snoozed ones count nowhere."""

    total_executions: int
    successful_runs: int
    failed_runs: int
    average_duration_ms: int
    """0 when none has ended."""
    last_execution_at: datetime | None
    next_scheduled_at: datetime | None
    success_rate: float
    """Completed among all that ended; 0 when none has."""


class JobCountsOut(BaseModel):
    """Jobs by state, now: as in every count, `pending` is due and waiting for a slot."""

    pending: int
    scheduled: int
    """Waiting for their time: delayed, to be tried again, snoozed or recurring; not among `pending`."""
    running: int
    paused: int
    completed: int
    failed: int
    cancelled: int


class RunCountsOut(BaseModel):
    """Runs since the beginning, also those that are no longer kept."""

    total: int
    average_duration_ms: int
    success_rate: float


class MetricsOut(BaseModel):
    """A summary of the scheduler."""

    jobs: JobCountsOut
    executions: RunCountsOut
    last_check_at: datetime | None
    """When any process last looked for due jobs; null when none ever did."""
    last_metrics_update: datetime | None
    """When any process last folded the counts, which are exact at any time."""
    stale_locks_cleared: int
    """Lost leases since the beginning."""


async def get_job_stats(request: Request, id: JobId) -> JobStatsOut:  # noqa: A002 - the path's name
    """Sum up the runs of one job."""
    stats = await reader_of(request).runs.job(number_of(id))
    return JobStatsOut(
        total_executions=stats.total_executions,
        successful_runs=stats.successful_runs,
        failed_runs=stats.failed_runs,
        average_duration_ms=round(stats.average_duration_ms or 0),
        last_execution_at=stats.last_execution_at,
        next_scheduled_at=stats.next_scheduled_at,
        success_rate=stats.success_rate,
    )


async def get_scheduler_metrics(request: Request) -> MetricsOut:
    """Sum up all jobs and runs."""
    reader = reader_of(request)
    metrics = await reader.insights.scheduler()
    chores, workers = await reader.chores.list(), await reader.workers.list()
    seen = max((one.seen_at for one in workers), default=None)
    return MetricsOut(
        jobs=JobCountsOut(**{state.value: metrics.jobs[state] for state in JobState}),
        executions=RunCountsOut(
            total=metrics.executions,
            average_duration_ms=round(metrics.average_duration_ms or 0),
            success_rate=metrics.success_rate,
        ),
        last_check_at=newest([last_run(chores, _LOOKS), seen]),
        last_metrics_update=last_run(chores, _METRICS),
        stale_locks_cleared=metrics.lost_leases,
    )


def last_run(chores: Iterable[Chore], names: frozenset[str]) -> datetime | None:
    """Return when one of some chores was last done, by any process."""
    return newest(chore.last_run_at for chore in chores if chore.name in names)


def newest(moments: Iterable[datetime | None]) -> datetime | None:
    """Pick the latest of those there are."""
    return max((moment for moment in moments if moment is not None), default=None)


async def get_queue_stats(request: Request) -> QueueStatsOut:
    """Sum up what waits, runs and will be tried again."""
    return shaped(QueueStatsOut, await context_of(request).app.stats())


ROUTES = (
    Route("GET", "/api/v1/jobs/{id}/stats", Role.VIEWER, get_job_stats, errors=(404,), is_costly=True),
    Route("GET", "/api/v1/scheduler/metrics", Role.VIEWER, get_scheduler_metrics, is_costly=True),
    Route("GET", "/api/v1/queue/stats", Role.VIEWER, get_queue_stats),
)
