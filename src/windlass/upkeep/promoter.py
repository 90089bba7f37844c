"""Makes jobs claimable and lets templates spawn at the moment they are due."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import timedelta

from windlass.ports import Clock, Store
from windlass.upkeep.hush import Hush
from windlass.upkeep.tally import Tally

log = logging.getLogger("windlass.upkeep")

_BATCH = 500
_SHORTEST_S = 0.001
_GAP_S = 0.004
"""The least time between two rounds: many due times or wake-ups close together are served as one."""


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
        """Serve `store`; `promoted` hears when jobs have become claimable."""
        self._store = store
        self._clock = clock
        self._poll_s = poll_interval.total_seconds()
        self._promoted = promoted
        self._is_paused = is_paused
        self._wake = asyncio.Event()
        self._hush = Hush(clock.monotonic)
        self.promotions = Tally()
        self.spawns = Tally()

    def wake(self) -> None:
        """Look now: something may be due earlier than what was known."""
        self._wake.set()

    async def run(self) -> None:
        """Promote until cancelled."""
        while True:
            self._wake.clear()
            began = self._clock.monotonic()
            pause = await self.round()
            await self._sleep(pause)
            rest = _GAP_S - (self._clock.monotonic() - began)
            if rest > 0:
                await asyncio.sleep(rest)

    async def round(self) -> float:
        """Do what is due; says how many seconds the next round can wait."""
        pause = self._poll_s
        if not self._is_paused("spawn"):
            pause = min(pause, await self._guarded(self.spawns, self._spawn))
        if not self._is_paused("promote"):
            pause = min(pause, await self._guarded(self.promotions, self._promote))
        return pause

    async def _guarded(self, tally: Tally, work: Callable[[], Awaitable[float]]) -> float:
        try:
            return await work()
        except Exception as error:  # noqa: BLE001 - what is due now is still due at the next round
            tally.fail(error)
            if self._hush.lets("due"):
                log.warning("what is due could not be served: %s: %s", type(error).__name__, error)
            return self._poll_s

    async def _spawn(self) -> float:
        began = self._clock.monotonic()
        spawned = await self._store.spawn(_BATCH)
        self.spawns.note(len(spawned), self._clock.monotonic() - began)
        if spawned:
            self._promoted()
        return 0 if len(spawned) == _BATCH else self._poll_s

    async def _promote(self) -> float:
        began = self._clock.monotonic()
        jobs, next_at = await self._store.promote(_BATCH)
        self.promotions.note(jobs, self._clock.monotonic() - began)
        if jobs:
            self._promoted()
        if jobs == _BATCH:
            return 0
        if next_at is None:
            return self._poll_s
        return max((next_at - self._clock.now()).total_seconds(), _SHORTEST_S)

    async def _sleep(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._wake.wait()
        except TimeoutError:
            pass
