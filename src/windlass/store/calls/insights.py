"""Queue statistics, each answer from one snapshot: all its numbers are of the same moment."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import NamedTuple

from windlass.core.breaker import Breaker
from windlass.core.cadence import EPOCH
from windlass.core.checks import check_range, check_text, check_wait
from windlass.core.counted_runs import CountedRuns, add_recent, add_times, add_totals
from windlass.core.insights import (
    RECENT,
    Arrivals,
    Present,
    Recent,
    RetriedJobs,
    RunTimes,
    Scrape,
    Summary,
    TaskInLane,
    summarize,
)
from windlass.core.job import MAX_NAME, RunReason, RunStatus
from windlass.core.pool import DEFAULT_POOLS, MAX_SLOTS, PoolSpec, parse_pools
from windlass.core.pool_use import pool_use
from windlass.core.runs import (
    Minute,
    Priorities,
    QueueStats,
    SchedulerMetrics,
    Total,
    queue_stats,
    scheduler_metrics,
)
from windlass.core.scale import WITHIN, LaneScale, scale_lane, serving, slots_for
from windlass.core.series import Series, series, series_query
from windlass.core.worker import WorkerRecord
from windlass.store import rows
from windlass.store.calls import breakers, runs, workers
from windlass.store.calls.call import Call, Means, Step, Steps, single
from windlass.store.rows import SHAPES, Row, Shape

_MOST_PRIORITIES = 2_000
_MOST_SAMPLED = 1_000
# Estimates: so many of the newest are enough for them, and each is a look at a row.
_MOST_ARRIVALS = 500
_MOST_RETRIED = 300
_MOST_PAYLOADS = 200
_MOST_DECLARED = 1_000
_MOST_BREAKERS = 500
_DAY = timedelta(days=1)
_MINUTE = timedelta(minutes=1)
_SECOND = timedelta(seconds=1)
SHAPES |= {"oldest_pending": Shape((2,)), "late_schedules": Shape((0, 1, 2))}


def queue() -> Call[QueueStats]:
    """Read how many jobs wait, run and will be tried again, and since when the first has been due."""

    def steps(_: Means) -> Steps[QueueStats]:
        at = yield from _now()
        counts = rows.counts((yield Step("count_jobs", {})))
        oldest = yield from _oldest()
        return queue_stats(counts, min(oldest.values(), default=None), at)

    return Call(steps, is_read=True, is_snapshot=True)


def scheduler() -> Call[SchedulerMetrics]:
    """Read jobs by state and runs since the beginning."""

    def steps(means: Means) -> Steps[SchedulerMetrics]:
        counts = rows.counts((yield Step("count_jobs", {})))
        return scheduler_metrics(counts, (yield from runs.totals().steps(means)))

    return Call(steps, is_read=True, is_snapshot=True)


def priorities() -> Call[Priorities]:
    """Count pending jobs by priority, as far as can be done quickly."""
    return single("pending_priorities", {}, _priorities, is_read=True)


def _priorities(found: Sequence[Row]) -> Priorities:
    jobs = {priority: number for priority, number in found}  # noqa: C416 - rows are tuples of unknown length to mypy
    return Priorities(jobs, sum(jobs.values()) <= _MOST_PRIORITIES)


def summary(*, is_whole: bool = True) -> Call[Summary]:
    """Read the statistics of every task and lane: depth now, rates and percentiles of the last minutes.

    The whole has what may be wrong, totals, and what is not counted anywhere: that is estimated from the newest jobs, a fixed
    number of them however many there are.
    """

    def steps(means: Means) -> Steps[Summary]:
        flow = yield from read_flow()
        return (yield from read_whole(flow, means)) if is_whole else summarize(flow.present, flow.recent)

    return Call(steps, is_read=True, is_snapshot=True)


def read_whole(flow: Looked, means: Means) -> Steps[Summary]:
    """Add to depth, rates and percentiles all else that a summary has; part of a snapshot that shows it."""
    recent = replace(
        flow.recent,
        retried=_retried((yield Step("retried_slices", {"limit": _MOST_RETRIED}))),
        payloads=_sizes((yield Step("payload_sizes", {"above": 0, "limit": _MOST_PAYLOADS}))),
        priorities=_priorities((yield Step("pending_priorities", {}))),
    )
    totals = add_totals((yield from _folded_totals()), flow.counted)
    return summarize((yield from _with_alarms(replace(flow.present, totals=totals), means)), recent)


class Looked(NamedTuple):
    """The state of the queue, and what happened in the last minutes."""

    present: Present
    """Without totals and without what alarms."""
    recent: Recent
    counted: Sequence[CountedRuns]
    registered: Sequence[WorkerRecord]


def read_flow() -> Steps[Looked]:
    """Read depth, rates and percentiles, without what is estimated from the newest jobs; part of a snapshot that shows them."""
    registered = yield from read_registered()
    present = yield from _queue(registered)
    since = whole_minute(present.at) - RECENT
    folded = _by_slice((yield Step("recent_minutes", {"since": since})))
    counted = yield from _counted(since)
    recent = Recent(since=since, minutes=add_recent(folded, counted), arrivals=(yield from _arrivals(since)))
    return Looked(present, recent, counted, registered)


def scale(
    lane: str, *, slots: int | None = None, within: timedelta = WITHIN, pools: Sequence[PoolSpec] | None = None
) -> Call[LaneScale]:
    """Read how many workers a lane wants; `*` is every lane but `pull`. Raises InvalidInput naming what is wrong.

    `slots` is how many slots of a worker serve the lane: left out, what those that are online have on average, and where none is
    what `pools` have.
    """
    check_text("lane", lane, MAX_NAME)
    check_wait("within", within, least=_SECOND)
    if slots is not None:
        check_range("slots", slots, 1, MAX_SLOTS)
    planned = slots_for(lane, {pool.lane: pool.slots for pool in pools or parse_pools(DEFAULT_POOLS)})

    def steps(_: Means) -> Steps[LaneScale]:
        flow = yield from read_flow()
        open_slices = rows.slices((yield Step("slices", {})))
        found = serving(lane, flow.registered)
        each = slots or (sum(found) // len(found) if found else max(1, planned))
        return scale_lane(lane, flow.present, flow.recent, online=len(found), open_slices=open_slices, slots=each, within=within)

    return Call(steps, is_read=True, is_snapshot=True)


def scrape() -> Call[Scrape]:
    """Read what monitors are shown: gauges of this moment, and counters that never become smaller."""

    def steps(means: Means) -> Steps[Scrape]:
        queue = yield from _queue((yield from read_registered()))
        counted = yield from _counted(queue.at)
        totals = add_totals((yield from _folded_totals()), counted)
        present = yield from _with_alarms(replace(queue, totals=totals), means)
        times = add_times(map(_run_times, (yield Step("run_times", {}))), counted)
        [[size, version]] = yield Step("store_size", {})
        return Scrape(present=present, times=times, schema_version=version, size_bytes=size)

    return Call(steps, is_read=True, is_snapshot=True)


def read_series(
    *,
    task: str | None = None,
    lane: str | None = None,
    from_at: datetime | None = None,
    to_at: datetime | None = None,
    step: timedelta = _MINUTE,
) -> Call[Series]:
    """Read the runs that ended over time; left out, the last hour, minute by minute. Raises InvalidInput naming what is wrong."""

    def steps(means: Means) -> Steps[Series]:
        query = series_query((yield from _now()), from_at=from_at, to_at=to_at, step=step, task=task, lane=lane)
        return series(query, (yield from runs.read_parts(query.first, query.last, task=task, lane=lane).steps(means)))

    if from_at is not None and to_at is not None:
        # Before anything is opened, where nothing has to be asked for.
        series_query(to_at, from_at=from_at, to_at=to_at, step=step, task=task, lane=lane)
    return Call(steps, is_read=True, is_snapshot=True)


def read_present(means: Means, registered: Sequence[WorkerRecord]) -> Steps[Present]:
    """Read the state of the queue; part of a call that watches it, which may be no snapshot."""
    queue = yield from _queue(registered)
    totals = yield from runs.totals().steps(means)
    return (yield from _with_alarms(replace(queue, totals=totals), means))


def _queue(registered: Sequence[WorkerRecord]) -> Steps[Present]:
    """Read what waits, what runs, and the workers."""
    at = yield from _now()
    counts = rows.counts((yield Step("count_jobs", {})))
    busy = {(row[0], row[1]): row[2] for row in (yield Step("busy_slots", {"limit": workers.MAX_STARTED}))}
    return Present(
        at=at,
        counts=counts,
        oldest=(yield from _oldest()),
        pools=pool_use(registered, busy),
        workers=sum(one.is_online for one in registered),
    )


def _with_alarms(present: Present, means: Means) -> Steps[Present]:
    """Add what may be wrong, and which tasks are declared."""
    [late] = yield Step("late_schedules", {"limit": _MOST_SAMPLED})
    [[raised]] = yield Step("count_alerts", {"limit": _MOST_SAMPLED})
    trips = yield Step("breaker_trips", {"limit": _MOST_SAMPLED, "within": _DAY})
    return replace(
        present,
        declared={row[0]: row[1] for row in (yield Step("declared_tasks", {"limit": _MOST_DECLARED}))},
        breakers=(yield from read_breakers(means)),
        trips={row[0]: row[1] for row in trips},
        late_since=min((one for one in late if one is not None), default=None),
        alerts=raised,
    )


def read_breakers(means: Means) -> Steps[Sequence[Breaker]]:
    """List as many breakers as are shown in one look."""
    return (yield from breakers.list_breakers(limit=_MOST_BREAKERS).steps(means))


def _now() -> Steps[datetime]:
    [[at]] = yield Step("clock", {})
    moment: datetime = at
    return moment


def whole_minute(at: datetime) -> datetime:
    """Return when the minute of a moment began."""
    return at.replace(second=0, microsecond=0)


def _oldest() -> Steps[dict[TaskInLane, datetime]]:
    return {TaskInLane(*row[:2]): row[2] for row in (yield Step("oldest_pending", {}))}


def read_registered() -> Steps[list[WorkerRecord]]:
    """List the processes without their jobs, which are counted by lane here."""
    params = {"offline_after": workers.OFFLINE_AFTER, "limit": workers.MAX_WORKERS}
    return [WorkerRecord(*row) for row in (yield Step("list_workers", params))]


def _arrivals(since: datetime) -> Steps[Arrivals]:
    [[floor]] = yield Step("id_floor", {"since": since})
    found = {TaskInLane(*row[:2]): row[2] for row in (yield Step("newest_slices", {"above": floor - 1, "limit": _MOST_ARRIVALS}))}
    looked_at = sum(found.values())
    if looked_at < _MOST_ARRIVALS:
        return Arrivals(found, looked_at)
    # Numbers are given out in order: between the first of these minutes and the newest there are about so many jobs.
    [[highest]] = yield Step("highest_job", {})
    return Arrivals(found, max(looked_at, highest - floor + 1))


def _retried(found: Sequence[Row]) -> dict[TaskInLane, RetriedJobs]:
    return {TaskInLane(*row[:2]): RetriedJobs(*row[2:]) for row in found}


def _sizes(found: Sequence[Row]) -> dict[TaskInLane, list[int]]:
    sizes = defaultdict[TaskInLane, list[int]](list)
    for task, lane, size in found:
        sizes[TaskInLane(task, lane)].append(size)
    return sizes


def _by_slice(found: Sequence[Row]) -> dict[TaskInLane, list[Minute]]:
    parts = defaultdict[TaskInLane, list[Minute]](list)
    for task, lane, *rest in found:
        parts[TaskInLane(task, lane)].append(runs.minute((_NO_MINUTE, *rest)))
    return parts


_NO_MINUTE = EPOCH
"""In place of the minutes of a stretch that is added up: it is never read."""


def _counted(since: datetime) -> Steps[list[CountedRuns]]:
    found = yield Step("unfolded_runs", {"since": since})
    return [
        CountedRuns(task, lane, RunStatus(status), RunReason(reason) if reason else None, *rest)
        for task, lane, status, reason, *rest in found
    ]


def _folded_totals() -> Steps[list[Total]]:
    """Read the runs that are folded; only in a snapshot do those that are not fit to them."""
    return runs.read_totals((yield Step("folded_totals", {})))


def _run_times(row: Row) -> RunTimes:
    task, number, wait_ms, duration_ms, waits, durations = row
    return RunTimes(task, number, wait_ms, duration_ms, runs.histogram(waits), runs.histogram(durations))
