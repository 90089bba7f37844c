"""Waiting jobs that no worker would ever run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from windlass.core.job import Count, JobState
from windlass.core.pool import PULL_LANE, PoolSpec
from windlass.core.worker import PULLING, WorkerRecord


class UnservedJobs(NamedTuple):
    """Waiting jobs of one task in one lane that no live worker takes."""

    task: str
    lane: str
    jobs: int
    has_code: bool
    """Whether some worker has the task's code, and only the lane is not served."""
    is_paused: bool = False
    """Whether a worker would take them, had no operator paused it."""

    def __str__(self) -> str:
        waiting = "1 job waits" if self.jobs == 1 else f"{self.jobs} jobs wait"
        if self.is_paused:
            what = f"{waiting} in lane {self.lane!r}, task {self.task!r}"
            return f"{what}, and every worker for it was told to claim nothing; `windlass workers resume` lets it claim again"
        if self.has_code:
            remedy = f"start a worker with a pool for it, as in --pools '{self.lane}=2,*=5'"
            return f"{waiting} in lane {self.lane!r}, task {self.task!r}, and no worker with its code serves that lane; {remedy}"
        remedy = "check the name, or start a worker whose application has it"
        return f"{waiting} for task {self.task!r} in lane {self.lane!r}, and no worker has code for it; {remedy}"


def find_unserved(counts: Sequence[Count], workers: Sequence[WorkerRecord]) -> Iterator[UnservedJobs]:
    """Compare waiting jobs with the workers that are alive; what pull workers take is not known, so with one all are served."""
    alive = [worker for worker in workers if worker.is_online]
    if any(worker.kind == PULLING for worker in alive):
        return
    served = [_served(worker) for worker in alive if worker.paused_at is None]
    paused = [_served(worker) for worker in alive if worker.paused_at is not None]
    for task, lane, state, _, jobs in counts:
        # A worker over HTTP is registered only once it has pulled.
        if state is not JobState.PENDING or jobs <= 0 or lane == PULL_LANE or _is_taken(served, task, lane):
            continue
        has_code = any(task in tasks for tasks, _ in served)
        yield UnservedJobs(task, lane, jobs, has_code, is_paused=_is_taken(paused, task, lane))


_Served = tuple[frozenset[str], list[PoolSpec]]


def _served(worker: WorkerRecord) -> _Served:
    return frozenset(worker.tasks), [PoolSpec(*pool) for pool in worker.pools.items()]


def _is_taken(served: Sequence[_Served], task: str, lane: str) -> bool:
    return any(pool.serves(lane) for tasks, pools in served if task in tasks for pool in pools)
