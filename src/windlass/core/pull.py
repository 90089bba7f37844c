"""What a pull worker asks for, for how long it gets a job, and which one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from random import Random
from typing import NamedTuple

from windlass.core.checks import check_text
from windlass.core.job import MAX_NAME, Lease, Slices

SHORTEST_LEASE = timedelta(seconds=30)
LONGEST_LEASE = timedelta(seconds=600)
MAX_PULL_TOKEN = 2**53 - 1
"""The largest number that every reader of JSON keeps exactly; jq and JavaScript round what is above."""
MAX_CANDIDATES = 100
"""How many jobs of one priority are looked at to pick one."""
MAX_PULLS = 32


class PickOrder(StrEnum):
    """Which job of lane `pull` comes first among those of one priority."""

    FIFO = "fifo"
    NEWEST = "newest"
    RANDOM = "random"
    FAIR = "fair"


class Pull(NamedTuple):
    """A worker that asks for one job."""

    lanes: tuple[str, ...]
    """Any of these is as good as the others."""
    lease: Lease
    tasks: tuple[str, ...] = ()
    """Only jobs of one of these; none is every task."""
    pull_id: str | None = None
    """A repeated pull of the same name gets the same lease again."""

    @property
    def wanted(self) -> tuple[object, ...]:
        """What the worker asks for: pulls that ask for the same share one search."""
        return self.lanes, self.tasks

    def check(self) -> None:
        """Refuse what no job could be found or kept by."""
        for lane in self.lanes:
            check_text("lane", lane, MAX_NAME)
        for task in self.tasks:
            check_text("task", task, MAX_NAME)
        check_text("worker", self.lease.worker, MAX_NAME)
        if self.pull_id is not None:
            check_text("pull_id", self.pull_id, MAX_NAME)

    def select(self, slices: Slices) -> Slices:
        """Keep the slices that this worker may get a job of, suspects among the others: it runs one job at a time."""
        return slices.select(lambda part: part.lane in self.lanes and (not self.tasks or part.task in self.tasks)).merged()


class Candidate(NamedTuple):
    """A job that may be picked."""

    id: int
    run_at: datetime
    group: str
    """Its correlation, else its subject; jobs with neither are one group."""


def lease_length(asked: timedelta | None, default: timedelta) -> timedelta:
    """Bring the lease that a pull asks for within its bounds."""
    return min(max(default if asked is None else asked, SHORTEST_LEASE), LONGEST_LEASE)


def pick(order: PickOrder, candidates: Sequence[Candidate], turns: Mapping[str, datetime], rng: Random) -> list[int]:
    """Return which jobs to try to take, the first first; `turns` has when a job of a group was last finished."""
    if order is PickOrder.RANDOM:
        return [one.id for one in rng.sample(candidates, len(candidates))]
    if order is PickOrder.FAIR:
        # A group that never had a turn comes first; the sort keeps the order among equals.
        candidates = sorted(candidates, key=lambda one: turns[one.group].timestamp() if one.group in turns else float("-inf"))
    return [one.id for one in candidates]
