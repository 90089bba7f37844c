"""Warns of waiting jobs that no worker would ever run."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from windlass.core.job import Count, JobState
from windlass.core.pool import PULL_LANE, PoolSpec
from windlass.core.worker import PULLING, WorkerRecord
from windlass.errors import StoreError
from windlass.store import Store
from windlass.worker.worker_log import log

_FIRST_S = 2.0
_EVERY_S = 15.0
_MOST_WARNED = 100
"""Names come from whoever enqueues, and there may be any number."""


class UnservedJobs(NamedTuple):
    """Waiting jobs of one task in one lane that no live worker takes."""

    task: str
    lane: str
    jobs: int
    has_code: bool
    """Whether some worker has the task's code, and only the lane is not served."""

    def __str__(self) -> str:
        waiting = "1 job waits" if self.jobs == 1 else f"{self.jobs} jobs wait"
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
    served = [
        (frozenset(json.loads(worker.tasks)), [PoolSpec(*pool) for pool in json.loads(worker.pools).items()]) for worker in alive
    ]
    for task, lane, state, _, jobs in counts:
        # Who pulls over HTTP is known only once it has asked.
        if state is not JobState.PENDING or jobs <= 0 or lane == PULL_LANE:
            continue
        able = [pools for tasks, pools in served if task in tasks]
        if not any(pool.serves(lane) for pools in able for pool in pools):
            yield UnservedJobs(task, lane, jobs, bool(able))


class Unserved:
    """Looks now and then, and warns once of each task and lane."""

    def __init__(self, store: Store) -> None:
        """Read counts and workers from `store`."""
        self._store = store
        self._warned: set[tuple[str, str]] = set()

    async def keep(self) -> None:
        """Look until cancelled."""
        await asyncio.sleep(_FIRST_S)
        while True:
            try:
                await self._look()
            except StoreError as error:
                log.debug("could not look for jobs that nobody runs: %s", error)
            await asyncio.sleep(_EVERY_S)

    async def _look(self) -> None:
        counts = await self._store.count_jobs()
        if not any(count.state is JobState.PENDING for count in counts):
            return
        for found in find_unserved(counts, await self._store.workers.list()):
            if (found.task, found.lane) not in self._warned and len(self._warned) < _MOST_WARNED:
                self._warned.add((found.task, found.lane))
                log.warning("%s", found)
