"""What keeps the queue moving by itself, in every server and worker."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from datetime import timedelta

from windlass.core.topic import Topic
from windlass.ports import Clock
from windlass.store import Store
from windlass.telemetry import LOG_EVERY_S, LogThrottle
from windlass.upkeep.chore_permits import ChorePermits
from windlass.upkeep.chores import UpkeepOptions, shared_duties
from windlass.upkeep.duty import ChoreCounts, Duty
from windlass.upkeep.promoter import Promoter
from windlass.upkeep.reclaimer import Reclaimer

log = logging.getLogger("windlass.upkeep")

__all__ = ["Upkeep", "UpkeepOptions"]

_BATCH = 500
_SHORTEST_S = 0.001
_REPORT_EVERY = timedelta(seconds=30)


class Upkeep:
    """Any number may run at once: what must be on time every one does, the rest one does for all."""

    def __init__(
        self,
        store: Store,
        *,
        clock: Clock,
        options: UpkeepOptions | None = None,
        promoted: Callable[[], None] = lambda: None,
        name: str = "upkeep",
        duties: Sequence[Duty] = (),
    ) -> None:
        """Serve `store`; `promoted` is called when jobs have become claimable, `duties` are further chores."""
        chosen = options or UpkeepOptions()
        self._clock = clock
        # Half a lease without a look counts as a break in contact: looked for more rarely, nothing would ever be taken back.
        self._reclaim_s = min(chosen.reclaim_interval, chosen.lease / 4).total_seconds()
        self._reclaimer = Reclaimer(store, lease=chosen.lease)
        self._reclaims = ChoreCounts()
        self._throttle = LogThrottle(LOG_EVERY_S, clock.monotonic)
        self._promoter = Promoter(
            store, clock=clock, poll_interval=chosen.poll_interval, promoted=promoted, is_paused=self._is_paused
        )
        reports = (
            Duty("promote", _REPORT_EVERY, self._promoter.promotions.report),
            Duty("spawn", _REPORT_EVERY, self._promoter.spawns.report),
            Duty("reclaim", _REPORT_EVERY, self._reclaims.report),
        )
        self._permits = ChorePermits(store, (*reports, *shared_duties(store, chosen), *duties), clock=clock, name=name)

    def _is_paused(self, chore: str) -> bool:
        return self._permits.is_paused(chore)

    def wake(self, topic: Topic = Topic.DUE) -> None:
        """Look now: something may be due earlier than what was known."""
        if topic is Topic.DUE:
            self._promoter.wake()

    async def run(self) -> None:
        """Keep up until cancelled."""
        # Read before anything is done: a chore that is paused stays so across restarts.
        await self._permits.look()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._promoter.run())
            group.create_task(self._reclaim())
            group.create_task(self._do_chores())

    async def round(self) -> timedelta:
        """Do every chore once that is due by now; returns how long the next round can wait."""
        pause = await self._permits.round()
        await self._promoter.round()
        await self._reclaim_once()
        return pause

    async def _do_chores(self) -> None:
        while True:
            pause = await self._permits.round()
            await asyncio.sleep(pause.total_seconds())

    async def _reclaim(self) -> None:
        while True:
            has_more = await self._reclaim_once()
            await asyncio.sleep(_SHORTEST_S if has_more else self._reclaim_s)

    async def _reclaim_once(self) -> bool:
        if self._is_paused("reclaim"):
            return False
        began = self._clock.monotonic()
        try:
            taken = await self._reclaimer.round(self._promoter.unleased_at)
        except Exception as error:  # noqa: BLE001 - a lease that has ended is still there at the next round
            self._reclaims.fail(error)
            if self._throttle.is_due("reclaim"):
                log.warning("lost leases could not be taken back: %s: %s", type(error).__name__, error)
            return False
        self._reclaims.note(len(taken), self._clock.monotonic() - began)
        for job_id in taken:
            log.warning("job %d: its worker stopped renewing, the lease was taken back", job_id)
        if taken:
            self._promoter.wake()
        return len(taken) == _BATCH
