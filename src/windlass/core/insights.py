"""Queue statistics for pages, commands and monitors, computed from one snapshot of the database."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple

from windlass.core.breaker import Breaker
from windlass.core.histogram import Histogram
from windlass.core.job import Count, JobState, RunReason
from windlass.core.pool_use import PoolUse
from windlass.core.record import record
from windlass.core.runs import Minute, Priorities, Total, span

RECENT = timedelta(minutes=5)
"""How far back rates and percentiles look; the minute that goes on comes on top of it."""
MOST_NAMES = 500
"""How many tasks, and how many lanes, a summary lists."""


class TaskInLane(NamedTuple):
    """One task in one lane."""

    task: str
    lane: str


class RunTimes(NamedTuple):
    """How long the runs of a task waited and took, since they are counted so; released and snoozed runs are left out."""

    task: str
    runs: int
    wait_ms: int
    duration_ms: int
    waits: Histogram
    durations: Histogram


class RetriedJobs(NamedTuple):
    """Of the newest jobs that were tried again and have ended: how many there are, and how many completed."""

    ended: int
    completed: int


class NextFire(NamedTuple):
    """When a recurring job runs next."""

    job_id: int
    name: str | None
    task: str
    at: datetime


class Arrivals(NamedTuple):
    """Where jobs came in: those looked at by slice, and how many came in all."""

    by_slice: Mapping[TaskInLane, int]
    total: int

    def of(self, slices: Iterable[TaskInLane]) -> float:
        """Estimate how many came to some slices; exact where all that came were looked at."""
        looked_at = sum(self.by_slice.values())
        share = sum(self.by_slice.get(one, 0) for one in slices)
        return share * max(1.0, self.total / looked_at) if looked_at else 0.0


@record(kw_only=True)
class Present:
    """The state of the queue, each number of the same moment."""

    at: datetime
    counts: Sequence[Count]
    totals: Sequence[Total] = ()
    declared: Mapping[str, str] = field(default_factory=dict)
    """The tasks that processes declared, with the lane of each."""
    oldest: Mapping[TaskInLane, datetime]
    """Since when the pending job that has been due the longest has been due."""
    pools: Sequence[PoolUse]
    workers: int
    """How many are online."""
    breakers: Sequence[Breaker] = ()
    trips: Mapping[str, int] = field(default_factory=dict)
    """How often breakers opened within the last day."""
    late_since: datetime | None = None
    """When the schedule was due that is the most overdue."""
    alerts: int = 0

    @property
    def lateness(self) -> timedelta:
        """How overdue the most overdue schedule is; nothing where none is."""
        return timedelta() if self.late_since is None else max(timedelta(), self.at - self.late_since)

    @property
    def lost_leases(self) -> int:
        """How many runs ended with a lost lease, since the beginning."""
        return sum(one.runs for one in self.totals if one.reason is RunReason.LEASE_EXPIRED)

    def age(self, since: datetime | None) -> timedelta:
        """Return how long ago something was."""
        return timedelta() if since is None else max(timedelta(), self.at - since)


@record(kw_only=True)
class Scrape:
    """What monitors read."""

    present: Present
    times: Sequence[RunTimes]
    schema_version: int
    size_bytes: int


@record(kw_only=True)
class Recent:
    """What happened in the last minutes, by slice."""

    since: datetime
    minutes: Mapping[TaskInLane, Minute]
    arrivals: Arrivals
    retried: Mapping[TaskInLane, RetriedJobs] = field(default_factory=dict)
    payloads: Mapping[TaskInLane, Sequence[int]] = field(default_factory=dict)
    """The sizes of the newest jobs' payloads, in bytes."""
    priorities: Priorities = field(default_factory=lambda: Priorities({}, is_exact=False))


class Times(NamedTuple):
    """Percentiles and average of some times in milliseconds; None where no run ended."""

    p50: float | None = None
    p95: float | None = None
    p99: float | None = None
    average: float | None = None


class Sizes(NamedTuple):
    """Percentiles of some sizes in bytes, and how many were looked at."""

    p50: int
    p95: int
    largest: int
    looked_at: int


@record(kw_only=True)
class Flow:
    """Statistics of one task, of one lane or of all jobs."""

    jobs: Mapping[JobState, int]
    oldest_pending: timedelta
    in_per_second: float
    out_per_second: float
    drain: timedelta | None
    wait: Times
    run: Times
    error_rate: float
    retry_success_rate: float | None
    payload_bytes: Sizes | None


@record(kw_only=True)
class Summary:
    """A summary of the queue, by task and by lane."""

    present: Present
    since: datetime
    """From when on rates and percentiles count."""
    total: Flow
    tasks: Mapping[str, Flow]
    lanes: Mapping[str, Flow]
    left_out: int
    """How many tasks and lanes are not listed because there are too many."""
    priorities: Priorities


def times(histogram: Histogram, total_ms: int, runs: int) -> Times:
    """Sum up how long runs waited or took."""
    if not runs:
        return Times()
    return Times(histogram.percentile(50), histogram.percentile(95), histogram.percentile(99), total_ms / runs)


def sizes(found: Iterable[int]) -> Sizes | None:
    """Sum up sizes; None where there are none."""
    ordered = sorted(found)
    if not ordered:
        return None
    last = len(ordered) - 1
    return Sizes(ordered[last // 2], ordered[last * 95 // 100], ordered[last], len(ordered))


def error_rate(completed: int, failed: int) -> float:
    """Return how many of the runs that completed or failed have failed; 0 where none did either."""
    return failed / (completed + failed) if completed + failed else 0.0


def summarize(present: Present, recent: Recent, *, has_tasks: bool = True) -> Summary:
    """Add up the counts by lane, in all and, where asked for, by task."""
    slices = {TaskInLane(one.task, one.lane) for one in present.counts} | set(recent.minutes) | set(recent.arrivals.by_slice)
    by_task, by_lane = defaultdict[str, list[TaskInLane]](list), defaultdict[str, list[TaskInLane]](list)
    for one in sorted(slices):
        by_task[one.task].append(one)
        # What was counted before lanes were has none.
        if one.lane:
            by_lane[one.lane].append(one)
    flows = _Flows(present, recent)
    return Summary(
        present=present,
        since=recent.since,
        total=flows.of(slices),
        tasks={name: flows.of(by_task[name]) for name in _first(by_task)} if has_tasks else {},
        lanes={name: flows.of(by_lane[name]) for name in _first(by_lane)},
        left_out=max(0, len(by_task) - MOST_NAMES) + max(0, len(by_lane) - MOST_NAMES),
        priorities=recent.priorities,
    )


def _first(names: Iterable[str]) -> list[str]:
    return sorted(names)[:MOST_NAMES]


@dataclass(slots=True)
class _Flows:
    """Adds up any set of slices."""

    present: Present
    recent: Recent
    _counts: dict[TaskInLane, Counter[JobState]] = field(init=False)

    def __post_init__(self) -> None:
        self._counts = defaultdict(Counter)
        for one in self.present.counts:
            self._counts[TaskInLane(one.task, one.lane)][one.state] += one.jobs

    def of(self, slices: Iterable[TaskInLane]) -> Flow:
        chosen = list(slices)
        jobs = dict.fromkeys(JobState, 0)
        for one in chosen:
            for state, number in self._counts.get(one, Counter[JobState]()).items():
                jobs[state] += number
        seconds = max(1.0, (self.present.at - self.recent.since).total_seconds())
        ended = span([found for one in chosen if (found := self.recent.minutes.get(one)) is not None]) or Minute(self.present.at)
        oldest = min((self.present.oldest[one] for one in chosen if one in self.present.oldest), default=None)
        arriving, leaving = self.recent.arrivals.of(chosen) / seconds, ended.finished / seconds
        return Flow(
            jobs=jobs,
            oldest_pending=self.present.age(oldest),
            in_per_second=arriving,
            out_per_second=leaving,
            drain=_drain(jobs[JobState.PENDING], leaving - arriving),
            wait=times(ended.waits, ended.wait_ms, ended.finished),
            run=times(ended.runs, ended.duration_ms, ended.finished),
            error_rate=error_rate(ended.completed, ended.failed),
            retry_success_rate=self._retry_success(chosen),
            payload_bytes=sizes(size for one in chosen for size in self.recent.payloads.get(one, ())),
        )

    def _retry_success(self, chosen: Sequence[TaskInLane]) -> float | None:
        found = [self.recent.retried[one] for one in chosen if one in self.recent.retried]
        ended = sum(one.ended for one in found)
        return sum(one.completed for one in found) / ended if ended else None


def _drain(pending: int, net_per_second: float) -> timedelta | None:
    """Return how long the pending jobs last at this rate; None while they do not become fewer."""
    if not pending:
        return timedelta()
    # Beyond a year the estimate means nothing.
    if net_per_second <= pending / timedelta(days=365).total_seconds():
        return None
    return timedelta(seconds=round(pending / net_per_second, 1))
