"""Makes jobs claimable and lets templates spawn at the moment they are due."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta

from windlass.ports import Clock
from windlass.store import Store
from windlass.telemetry import LOG_EVERY_S, LogThrottle
from windlass.upkeep.duty import ChoreCounts

log = logging.getLogger("windlass.upkeep")

_BATCH = 500
_SHORTEST_S = 0.001
_LEAST_GAP_S = 0.004
_MOST_GAP_S = 0.032
"""The time between two rounds: due times close together are served as one. A process that finds the work done by others waits
longer, so that ten processes ask little more than one."""
_HINT_GAP_S = 0.016
"""Wake-ups mean that something may be due earlier than was known; it hardly ever is within so short a time."""
_WOKEN_PER_POLL = 10
"""How often in a poll interval at most the workers that claim are woken for pending jobs."""


class Promoter:
    """Sleeps until the next due time it knows of, a wake-up, or the poll interval; every process has one."""

    def __init__(
        self,
        store: Store,
        *,
        clock: Clock,
        poll_interval: timedelta,
        promoted: Callable[[], None],
        is_paused: Callable[[str], bool],
    ) -> None:
        """Serve `store`; `promoted` is called when jobs have become claimable, and while any may be pending."""
        self._store = store
        self._clock = clock
        self._poll_s = poll_interval.total_seconds()
        self._promoted = promoted
        self._is_paused = is_paused
        self._wake = asyncio.Event()
        self._throttle = LogThrottle(LOG_EVERY_S, clock.monotonic)
        self._served = 0
        self._may_have_pending = True
        self._woken_at = 0.0
        self.unleased_at: datetime | None = None
        """When no lease was held, if the last look found it so."""
        self.promotions = ChoreCounts()
        self.spawns = ChoreCounts()

    def wake(self) -> None:
        """Look now: something may be due earlier than what was known."""
        self._wake.set()

    async def run(self) -> None:
        """Promote until cancelled."""
        gap_s = _LEAST_GAP_S
        is_hint = True
        while True:
            self._wake.clear()
            began = self._clock.monotonic()
            before = self._served
            pause = await self.round()
            self._wake_for_pending()
            due = self._clock.monotonic() + pause
            if self._served > before:
                gap_s = _LEAST_GAP_S
            elif not is_hint:
                gap_s = min(2 * gap_s, _MOST_GAP_S)
            is_hint = await self._sleep(pause)
            earliest = min(due, began + _HINT_GAP_S) if is_hint else began + gap_s
            await asyncio.sleep(max(earliest - self._clock.monotonic(), 0))

    async def round(self) -> float:
        """Do what is due; returns how many seconds the next round can wait."""
        self._may_have_pending, self.unleased_at = True, None
        if not self._is_paused("promote"):
            return await self._guarded(self.promotions, self._promote)
        if not self._is_paused("spawn"):
            await self._guarded(self.spawns, self._spawn)
        return self._poll_s

    async def _guarded(self, counts: ChoreCounts, work: Callable[[], Awaitable[float]]) -> float:
        try:
            return await work()
        except Exception as error:  # noqa: BLE001 - what is due now is still due at the next round
            counts.fail(error)
            if self._throttle.is_due("due"):
                log.warning("what is due could not be served: %s: %s", type(error).__name__, error)
            return self._poll_s

    async def _promote(self) -> float:
        began = self._clock.monotonic()
        promoted = await self._store.promote(_BATCH)
        jobs, next_at = promoted.jobs, promoted.next_at
        self._may_have_pending, self.unleased_at = promoted.has_pending, promoted.unleased_at
        self.promotions.note(jobs, self._clock.monotonic() - began)
        self._tell(jobs)
        if promoted.has_templates and not self._is_paused("spawn"):
            return await self._guarded(self.spawns, self._spawn)
        if jobs >= _BATCH:
            return 0
        if next_at is None:
            return self._poll_s
        return min(self._poll_s, max((next_at - self._clock.now()).total_seconds(), _SHORTEST_S))

    async def _spawn(self) -> float:
        began = self._clock.monotonic()
        spawned = len(await self._store.spawn(_BATCH))
        self.spawns.note(spawned, self._clock.monotonic() - began)
        self._tell(spawned)
        # Their next times, and those of other jobs, are found by the round that follows.
        return _SHORTEST_S

    def _tell(self, served: int) -> None:
        self._served += served
        if served:
            self._woken_at = self._clock.monotonic()
            self._promoted()

    def _wake_for_pending(self) -> None:
        """Wake the workers that claim while jobs may be pending: so they need not look every poll interval by themselves."""
        now = self._clock.monotonic()
        if self._may_have_pending and now >= self._woken_at + self._poll_s / _WOKEN_PER_POLL:
            self._woken_at = now
            self._promoted()

    async def _sleep(self, seconds: float) -> bool:
        """Wait for a wake-up at most so long; returns whether one came."""
        try:
            async with asyncio.timeout(seconds):
                await self._wake.wait()
        except TimeoutError:
            return False
        return True
