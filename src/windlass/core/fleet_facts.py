"""What the database knows of gates, workers and upkeep at one moment; explanations are made of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from datetime import datetime, timedelta
from typing import NamedTuple

from windlass.core.breaker import Breaker
from windlass.core.known_task import KnownTask
from windlass.core.pool import EVERY_LANE, PoolSpec
from windlass.core.record import record
from windlass.core.worker import PULLING, WorkerRecord
from windlass.errors import InvalidInput

UPKEEP_SILENT_AFTER = timedelta(seconds=75)
"""Some chore is done every 10 s, and one of each 30 s whatever the settings are."""


class LanePause(NamedTuple):
    """The pause that holds a lane back: its own, or that of `*`."""

    name: str
    paused_at: datetime
    paused_by: str | None


class LeaseGroup(NamedTuple):
    """The leases that one worker has on jobs of one lane and task."""

    worker: str
    lane: str
    task: str
    started: int
    waiting: int
    """Claimed, and not started yet."""
    suspects: int
    """Started, in quarantine."""
    oldest_started_at: datetime | None


class EndedRuns(NamedTuple):
    """Runs of a task that ended within a time; released and snoozed ones are left out."""

    completed: int = 0
    failed: int = 0
    cancelled: int = 0
    duration_ms: int = 0

    @property
    def total(self) -> int:
        """How many ended, however they did."""
        return self.completed + self.failed + self.cancelled


class Capacity(NamedTuple):
    """A worker's slots for a lane."""

    worker: str
    slots: int
    free: int


@record(kw_only=True)
class FleetFacts:
    """Gates, live workers, leases and upkeep."""

    now: datetime
    workers: Sequence[WorkerRecord] = ()
    """Those that are alive."""
    leases: Sequence[LeaseGroup] = ()
    pauses: Mapping[str, LanePause] = field(default_factory=dict)
    """By the lane that is held back."""
    tasks: Mapping[str, KnownTask] = field(default_factory=dict)
    breakers: Mapping[str, Breaker] = field(default_factory=dict)
    upkeep_at: datetime | None = None
    """When any process last did a chore."""
    paused_chores: frozenset[str] = frozenset()

    @property
    def is_upkept(self) -> bool:
        """Whether some process does the upkeep."""
        return self.upkeep_at is not None and self.now - self.upkeep_at <= UPKEEP_SILENT_AFTER

    @property
    def runners(self) -> list[WorkerRecord]:
        """The live workers that claim from the database and record what they serve."""
        return [worker for worker in self.workers if worker.kind != PULLING and worker.paused_at is None]

    @property
    def pullers(self) -> list[WorkerRecord]:
        """The live workers over HTTP; which lanes and tasks they ask for is not recorded."""
        return [worker for worker in self.workers if worker.kind == PULLING]

    def with_code(self, task: str) -> list[WorkerRecord]:
        """List the live workers that have a task's code."""
        return [worker for worker in self.runners if task in worker.tasks]

    def serving(self, lane: str, task: str | None = None) -> list[WorkerRecord]:
        """List the live workers with slots for a lane, and with a task's code."""
        able = self.runners if task is None else self.with_code(task)
        return [worker for worker in able if any(pool.serves(lane) for pool in _pools(worker))]

    def paused(self, lane: str, task: str) -> list[WorkerRecord]:
        """List the live workers that would run a task's jobs in a lane, had no operator paused them."""
        able = [worker for worker in self.workers if worker.paused_at is not None and task in worker.tasks]
        return [worker for worker in able if any(pool.serves(lane) for pool in _pools(worker))]

    def are_rivals(self, lane: str, task: str, other: str) -> bool:
        """Whether jobs of another task in the lane may take the slots of this one; where no worker serves this one, any may."""
        serving = self.serving(lane, task)
        return not serving or any(other in worker.tasks for worker in serving)

    def capacities(self, lane: str, task: str | None = None) -> list[Capacity]:
        """Count slots and free slots of each worker that serves a lane.

        Which slot a run has is not recorded. A lane's own slots are taken to fill first, then those of `*`.
        """
        return [self._capacity(worker, lane) for worker in self.serving(lane, task)]

    def _capacity(self, worker: WorkerRecord, lane: str) -> Capacity:
        slots = {pool.lane: pool.slots for pool in _pools(worker)}
        started: dict[str, int] = {}
        for lease in self.leases:
            if lease.worker == worker.id:
                started[lease.lane] = started.get(lease.lane, 0) + lease.started
        spilled = sum(max(0, runs - slots.get(other, 0)) for other, runs in started.items() if other != lane)
        # Suspects have places of their own.
        own = slots.get(lane, 0)
        shared = slots.get(EVERY_LANE, 0) if any(pool.serves(lane) for pool in _pools(worker) if pool.lane == EVERY_LANE) else 0
        left_own = max(0, own - started.get(lane, 0))
        left_shared = max(0, shared - spilled - max(0, started.get(lane, 0) - own))
        return Capacity(worker.id, own + shared, left_own + left_shared)

    def busy_with(self, workers: Sequence[str]) -> list[LeaseGroup]:
        """List what some workers run, the most first."""
        mine = [lease for lease in self.leases if lease.worker in workers and lease.started]
        return sorted(mine, key=lambda lease: (-lease.started, lease.task, lease.worker))


def _pools(worker: WorkerRecord) -> Iterator[PoolSpec]:
    for lane, slots in worker.pools.items():
        try:
            yield PoolSpec(lane, slots)
        except InvalidInput:
            # Another version may write what this one does not know.
            continue
