"""What keeps the queue moving by itself, in every server and worker."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta

from windlass.core.topic import Topic
from windlass.errors import StoreError
from windlass.ports import Clock, Store
from windlass.upkeep.reclaimer import Reclaimer

log = logging.getLogger("windlass.upkeep")

_BATCH = 500
_SHORTEST_S = 0.001


@dataclass(frozen=True, slots=True, kw_only=True)
class UpkeepOptions:
    """How often the chores come round (SPEC §14)."""

    lease: timedelta = timedelta(seconds=20)
    poll_interval: timedelta = timedelta(seconds=1)
    reclaim_interval: timedelta = timedelta(seconds=2)
    fold_interval: timedelta = timedelta(seconds=2)


class Upkeep:
    """Promotes what is due at its time, takes back lost leases and folds counters; any number may run at once."""

    def __init__(
        self, store: Store, *, clock: Clock, options: UpkeepOptions | None = None, promoted: Callable[[], None] = lambda: None
    ) -> None:
        """Serve `store`; `promoted` hears when jobs have become claimable."""
        self._store = store
        self._clock = clock
        self._options = options or UpkeepOptions()
        self._promoted = promoted
        self._reclaimer = Reclaimer(store, lease=self._options.lease)
        self._wake = asyncio.Event()

    def wake(self, topic: Topic = Topic.DUE) -> None:
        """Look now: something may be due earlier than what was known."""
        if topic is Topic.DUE:
            self._wake.set()

    async def run(self) -> None:
        """Keep up until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._promote())
            group.create_task(self._every(self._options.reclaim_interval, self._reclaim))
            group.create_task(self._every(self._options.fold_interval, self._fold))

    async def _promote(self) -> None:
        """Sleep until the next due time that is known, a wake-up, or the poll interval."""
        while True:
            self._wake.clear()
            pause = self._options.poll_interval.total_seconds()
            try:
                pause = await self._promote_once(pause)
            except StoreError as error:
                log.warning("due jobs could not be promoted: %s", error)
            try:
                async with asyncio.timeout(pause):
                    await self._wake.wait()
            except TimeoutError:
                pass

    async def _promote_once(self, longest: float) -> float:
        spawned = await self._store.spawn(_BATCH)
        promoted = await self._store.promote(_BATCH)
        if promoted.jobs or spawned:
            self._promoted()
        if promoted.jobs == _BATCH or len(spawned) == _BATCH:
            return 0
        if promoted.next_at is None:
            return longest
        return min(longest, max((promoted.next_at - self._clock.now()).total_seconds(), _SHORTEST_S))

    async def _reclaim(self) -> bool:
        taken = await self._reclaimer.round()
        for job_id in taken:
            log.warning("job %d: its worker stopped renewing, the lease was taken back", job_id)
        if taken:
            self._wake.set()
        return len(taken) == _BATCH

    async def _fold(self) -> bool:
        return await self._store.fold_counts() + await self._store.runs.fold() > 0

    async def _every(self, interval: timedelta, chore: Callable[[], Awaitable[bool]]) -> None:
        """Do a chore again and again; at once when it says that there is more."""
        while True:
            try:
                has_more = await chore()
            except StoreError as error:
                log.warning("upkeep could not be done: %s", error)
                has_more = False
            await asyncio.sleep(_SHORTEST_S if has_more else interval.total_seconds())
