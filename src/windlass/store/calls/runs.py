"""How runs went: totals, minutes, and what is made of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime, timedelta

from windlass.core.checks import check_instant, check_range, check_text, check_wait
from windlass.core.histogram import Histogram
from windlass.core.job import MAX_NAME, RunReason, RunStatus
from windlass.core.runs import (
    JobStats,
    Minute,
    Priorities,
    QueueStats,
    SchedulerMetrics,
    Total,
    add_minutes,
    queue_stats,
    scheduler_metrics,
)
from windlass.errors import InvalidInput, JobNotFound
from windlass.store import rows
from windlass.store.calls.call import Call, Means, Step, Steps, single
from windlass.store.calls.move import possible
from windlass.store.rows import Row, Shape

KEEP_MINUTES = timedelta(days=7)
_MOST_COUNTED = 10_000
SHAPES = {"run_minutes": Shape((0,)), "job_stats": Shape((4, 5)), "oldest_pending": Shape((0, 1))}


def totals() -> Call[list[Total]]:
    """Read all runs since the beginning, by task, status and reason."""
    return single("run_totals", {}, _totals, is_read=True)


def _totals(found: Sequence[Row]) -> list[Total]:
    return [Total(row[0], RunStatus(row[1]), RunReason(row[2]) if row[2] else None, *row[3:]) for row in found]


def minutes(since: datetime, until: datetime, *, task: str | None = None) -> Call[list[Minute]]:
    """Read the minutes that began from `since` on and before `until`, oldest first; without a task, all tasks together."""
    if task is not None:
        check_text("task", task, MAX_NAME)
    check_instant("since", since)
    check_instant("until", until)
    if until - since > KEEP_MINUTES:
        raise InvalidInput("since", since, f"must be at most {KEEP_MINUTES.days} days before until")
    return single("run_minutes", {"task": task, "since": since, "before_at": until}, _minutes, is_read=True)


def _minutes(found: Sequence[Row]) -> list[Minute]:
    return add_minutes(
        Minute(row[0], row[1] or 0, row[2] or 0, row[3] or 0, row[4], row[5], _histogram(row[6]), _histogram(row[7]))
        for row in found
    )


def _histogram(text: str) -> Histogram:
    return Histogram({int(bucket): runs for bucket, runs in json.loads(text).items()})


def fold_runs(limit: int = 10_000) -> Call[int]:
    """Move counted runs to their totals and minutes; nothing a reader adds up changes."""
    check_range("limit", limit, 1, 1_000_000)
    return single("fold_runs", {"limit": limit}, lambda found: found[0][0])


def prune_minutes(keep: timedelta = KEEP_MINUTES, *, limit: int = 10_000) -> Call[int]:
    """Delete minutes older than `keep`."""
    check_wait("keep", keep, least=timedelta(minutes=1))
    check_range("limit", limit, 1, 1_000_000)
    return single("prune_minutes", {"keep_for": keep, "limit": limit}, lambda found: found[0][0])


def job_stats(job_id: int) -> Call[JobStats]:
    """Add up the kept runs of one job; raises JobNotFound."""

    def steps(_: Means) -> Steps[JobStats]:
        found = (yield Step("job_stats", {"job_id": job_id})) if possible([job_id]) else []
        if not found:
            raise JobNotFound(job_id)
        finished, completed, failed, spent_ms, last_at, next_at = found[0]
        average = spent_ms / finished if finished else None
        return JobStats(finished, completed, failed, average, last_at, next_at)

    return Call(steps, is_single=True, is_read=True)


def metrics() -> Call[SchedulerMetrics]:
    """Read jobs by state and runs since the beginning."""

    def steps(_: Means) -> Steps[SchedulerMetrics]:
        counts = rows.counts((yield Step("count_jobs", {})))
        return scheduler_metrics(counts, _totals((yield Step("run_totals", {}))))

    return Call(steps, is_read=True)


def queue() -> Call[QueueStats]:
    """Read how many jobs wait, run and will be tried again, and since when the first has been due."""

    def steps(_: Means) -> Steps[QueueStats]:
        counts = rows.counts((yield Step("count_jobs", {})))
        [[moment, oldest]] = yield Step("oldest_pending", {})
        return queue_stats(counts, oldest, moment)

    return Call(steps, is_read=True)


def priorities() -> Call[Priorities]:
    """Count pending jobs by priority, as far as can be done quickly."""
    return single("pending_priorities", {}, _priorities, is_read=True)


def _priorities(found: Sequence[Row]) -> Priorities:
    jobs = {priority: number for priority, number in found}  # noqa: C416 - rows are tuples of unknown length to mypy
    return Priorities(jobs, sum(jobs.values()) <= _MOST_COUNTED)
