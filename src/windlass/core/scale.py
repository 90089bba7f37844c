"""How many workers a lane wants, for autoscalers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from math import ceil
from typing import NamedTuple

from windlass.core.insights import Present, Recent, TaskInLane
from windlass.core.job import JobState, Slices
from windlass.core.pool import EVERY_LANE, PULL_LANE
from windlass.core.record import record
from windlass.core.runs import Minute, span
from windlass.core.worker import WorkerRecord

WITHIN = timedelta(minutes=1)
"""In what time a backlog should be worked off."""


@record(kw_only=True)
class LaneScale:
    """How many workers a lane wants, and what that was worked out from."""

    lane: str
    at: datetime
    workers: int
    slots: float
    """How many jobs should run side by side."""
    slots_per_worker: int
    online: int
    """How many workers that serve the lane are online."""
    pending: int
    """Due jobs that may be claimed: those that a pause or a breaker holds back are left out."""
    running: int
    in_per_second: float
    run_seconds: float | None
    """How long a run took on average within the last minutes; None where none ended."""


class _SliceLoad(NamedTuple):
    """The jobs of one task in the lane."""

    pending: int
    running: int
    in_per_second: float
    run_seconds: float | None

    def slots(self, within: timedelta) -> float:
        """Work out how many jobs should run side by side.

        A slot does `within / run_seconds` short jobs in time, so a waiting job wants that part of one. A job that takes longer,
        or of a task of which nothing is known yet, wants a whole one. Jobs that keep coming want a slot for each second of work
        that comes in a second.
        """
        share = 1.0 if self.run_seconds is None else min(1.0, self.run_seconds / within.total_seconds())
        steady = self.in_per_second * (self.run_seconds or 0.0)
        return max(steady, self.running * share) + self.pending * share


def scale_lane(
    lane: str, present: Present, recent: Recent, *, online: int, open_slices: Slices, slots: int, within: timedelta
) -> LaneScale:
    """Work out how many workers of so many slots a lane wants; `*` is every lane but `pull`."""
    parts = list(_parts(lane, present, recent, open_slices))
    wanted = sum(part.slots(within) for part in parts)
    took = _average(span([minute for one, minute in recent.minutes.items() if _is_in(lane, one.lane)]))
    return LaneScale(
        lane=lane,
        at=present.at,
        # Rounded first, so that the last digit of a sum of fractions starts no worker.
        workers=ceil(round(wanted / slots, 6)),
        slots=round(wanted, 3),
        slots_per_worker=slots,
        online=online,
        pending=sum(part.pending for part in parts),
        running=sum(part.running for part in parts),
        in_per_second=sum(part.in_per_second for part in parts),
        run_seconds=took,
    )


def _parts(lane: str, present: Present, recent: Recent, open_slices: Slices) -> Iterable[_SliceLoad]:
    counts: Counter[tuple[TaskInLane, JobState]] = Counter()
    for count in present.counts:
        counts[TaskInLane(count.task, count.lane), count.state] += count.jobs
    may_run = {TaskInLane(one.task, one.lane) for one in (*open_slices.open, *open_slices.suspects)}
    probes = {TaskInLane(one.task, one.lane) for one in open_slices.open if one.breaker is not None}
    seconds = max(1.0, (present.at - recent.since).total_seconds())
    for one in sorted({each for each, _ in counts} | set(recent.minutes)):
        if not _is_in(lane, one.lane):
            continue
        pending, running = counts[one, JobState.PENDING], counts[one, JobState.RUNNING]
        arriving = recent.arrivals.of([one]) / seconds
        if pending and one not in may_run:
            pending, arriving = 0, 0.0
        elif one in probes:
            pending, arriving = min(1, pending), 0.0
        yield _SliceLoad(max(0, pending), max(0, running), arriving, _average(recent.minutes.get(one)))


def _average(ended: Minute | None) -> float | None:
    """Return how many seconds a run took."""
    return ended.duration_ms / ended.finished / 1000 if ended is not None and ended.finished else None


def serving(lane: str, workers: Iterable[WorkerRecord]) -> list[int]:
    """List how many slots each live worker has for a lane; those without any are left out."""
    found = (slots_for(lane, one.pools) for one in workers if one.is_online)
    return [slots for slots in found if slots]


def slots_for(lane: str, pools: Mapping[str, int]) -> int:
    """Return how many slots some pools have for a lane: its own, else those of `*`; for `*` all of them but `pull`."""
    if lane == EVERY_LANE:
        return sum(slots for name, slots in pools.items() if name != PULL_LANE)
    return pools.get(lane) or (pools.get(EVERY_LANE, 0) if lane != PULL_LANE else 0)


def _is_in(lane: str, other: str) -> bool:
    return other != PULL_LANE if lane == EVERY_LANE else other == lane
