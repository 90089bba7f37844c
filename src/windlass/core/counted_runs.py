"""Runs that are counted and not yet folded, and how they are added to what is."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from windlass.core.cadence import EPOCH
from windlass.core.histogram import Histogram, merge
from windlass.core.insights import RunTimes, TaskInLane
from windlass.core.job import RunReason, RunStatus
from windlass.core.runs import UNCOUNTED, Minute, Total, span

K = TypeVar("K", bound=Hashable)
_NO_MINUTE = EPOCH
"""In place of the minutes of a stretch that is added up: it is never read."""


class CountedRuns(NamedTuple):
    """Runs of a task in a lane that ended alike."""

    task: str
    lane: str
    status: RunStatus
    reason: RunReason | None
    is_recent: bool
    """Whether they ended within the stretch that rates and percentiles are of."""
    runs: int
    wait_ms: int
    duration_ms: int
    buckets: str
    """How many waited and took so long: `wait bucket:run bucket:runs`, separated by commas."""


def add_totals(folded: Iterable[Total], counted: Iterable[CountedRuns]) -> list[Total]:
    """Add up runs by task, status and reason, in this order."""
    sums = {(one.task, one.status, one.reason or ""): one for one in folded}
    for one in counted:
        key = one.task, one.status, one.reason or ""
        before = sums.get(key) or Total(one.task, one.status, one.reason, 0, 0, 0)
        sums[key] = before._replace(
            runs=before.runs + one.runs,
            wait_ms=before.wait_ms + one.wait_ms,
            duration_ms=before.duration_ms + one.duration_ms,
        )
    return [sums[key] for key in sorted(sums)]


def add_recent(folded: Mapping[TaskInLane, Sequence[Minute]], counted: Iterable[CountedRuns]) -> dict[TaskInLane, Minute]:
    """Add up the recent runs of each task in each lane."""
    parts = defaultdict[TaskInLane, list[Minute]](list, {where: [*minutes] for where, minutes in folded.items()})
    for where, fresh in _by(lambda one: TaskInLane(one.task, one.lane), (one for one in counted if one.is_recent)).items():
        parts[where].append(fresh)
    return {where: whole for where, minutes in parts.items() if (whole := span(minutes)) is not None}


def add_times(folded: Iterable[RunTimes], counted: Iterable[CountedRuns]) -> list[RunTimes]:
    """Add up how long runs waited and took, by task in the order of their names."""
    parts = defaultdict[str, list[RunTimes]](list)
    for one in folded:
        parts[one.task].append(one)
    for task, fresh in _by(lambda one: one.task, counted).items():
        parts[task].append(RunTimes(task, fresh.finished, fresh.wait_ms, fresh.duration_ms, fresh.waits, fresh.runs))
    return [_times(task, parts[task]) for task in sorted(parts)]


def _times(task: str, parts: Sequence[RunTimes]) -> RunTimes:
    return RunTimes(
        task,
        sum(one.runs for one in parts),
        sum(one.wait_ms for one in parts),
        sum(one.duration_ms for one in parts),
        merge(one.waits for one in parts),
        merge(one.durations for one in parts),
    )


def _by(key: Callable[[CountedRuns], K], counted: Iterable[CountedRuns]) -> dict[K, Minute]:
    parts = defaultdict[K, list[CountedRuns]](list)
    for one in counted:
        if one.reason not in UNCOUNTED:
            parts[key(one)].append(one)
    return {name: _minute(found) for name, found in parts.items()}


def _minute(parts: Sequence[CountedRuns]) -> Minute:
    ended, waits, runs = Counter[RunStatus](), Counter[int](), Counter[int]()
    for one in parts:
        ended[one.status] += one.runs
        for each in one.buckets.split(","):
            wait_bucket, run_bucket, number = map(int, each.split(":"))
            waits[wait_bucket] += number
            runs[run_bucket] += number
    return Minute(
        _NO_MINUTE,
        ended[RunStatus.COMPLETED],
        ended[RunStatus.FAILED],
        ended[RunStatus.CANCELLED],
        sum(one.wait_ms for one in parts),
        sum(one.duration_ms for one in parts),
        Histogram(waits),
        Histogram(runs),
    )
