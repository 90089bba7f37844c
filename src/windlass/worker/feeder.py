"""Claims jobs for hungry pools."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable, Sequence
from datetime import timedelta

from windlass.core.job import Claimed, Lease, Slices
from windlass.core.task import Registry
from windlass.errors import StoreError
from windlass.ports import Work
from windlass.worker.options import WorkerOptions
from windlass.worker.pool import Pool

log = logging.getLogger("windlass.worker")

_AFTER_FAILURE_S = 0.5


class Feeder:
    """Looks for work whenever a pool has room, a wake-up comes or the poll interval is over."""

    def __init__(
        self,
        store: Work,
        registry: Registry,
        options: WorkerOptions,
        *,
        name: str,
        taken: Callable[[Sequence[Claimed]], None],
        is_probe: Callable[[Claimed], None],
    ) -> None:
        """Claim in `name` what `registry` has code for; `taken` hears of claimed jobs, `is_probe` of those that try a breaker."""
        self._store = store
        self._tasks = registry.names
        self._lease_length: timedelta = options.lease
        self._poll_s = options.poll_interval.total_seconds()
        self._name = name
        self._taken = taken
        self._is_probe = is_probe
        self._slices: Slices | None = None
        self._wake = asyncio.Event()
        self._is_closing = False

    def hungry(self) -> None:
        """Hear that a pool has room."""
        self._wake.set()

    def look(self) -> None:
        """Hear that there is new work: what was known of the queue is old."""
        self._slices = None
        self._wake.set()

    def close(self) -> None:
        """Claim nothing more."""
        self._is_closing = True
        self._wake.set()

    async def run(self, pools: Sequence[Pool]) -> None:
        """Claim until closed; a claim under way is always heard to its end."""
        while not self._is_closing:
            # Cleared before looking, so that nothing that comes after the look is missed.
            self._wake.clear()
            try:
                is_served = await self._fill(pools)
            except StoreError as error:
                log.warning("no jobs can be claimed: %s", error)
                self._slices = None
                await self._pause(_AFTER_FAILURE_S)
                continue
            if is_served:
                await self._pause(self._poll_s)

    async def _pause(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._wake.wait()
        except TimeoutError:
            self._slices = None

    async def _fill(self, pools: Sequence[Pool]) -> bool:
        """Claim for every hungry pool; says whether there is nothing more to get for them now."""
        hungry = [pool for pool in pools if pool.wants]
        if not hungry:
            return True
        is_fresh = self._slices is None
        slices = self._slices or await self._store.slices()
        self._slices = slices
        is_short = False
        for pool in hungry:
            wanted = pool.wants
            is_short |= wanted > 0 and await self._claim(pool, slices, wanted) < wanted
        if is_short:
            # The slices are used up, or a gate has moved: look again, unless this was such a look.
            self._slices = None
            return is_fresh
        return not any(pool.wants for pool in pools)

    async def _claim(self, pool: Pool, slices: Slices, wanted: int) -> int:
        mine = pool.select(slices, self._tasks)
        claimed = (
            await self._store.claim(mine, wanted, self._lease(), started=pool.runs_at_once(wanted)) if mine.claimable else []
        )
        self._hand_over(pool, claimed)
        if len(claimed) < wanted:
            return len(claimed) + await self._claim_probes(pool, mine)
        return len(claimed)

    async def _claim_probes(self, pool: Pool, slices: Slices) -> int:
        """Try services whose breakers are due to be tried, each with one job over the whole fleet."""
        for breaker in slices.breakers:
            probe = await self._store.claim_probe(slices, breaker, self._lease())
            if probe is not None:
                self._is_probe(probe)
                self._hand_over(pool, [probe])
                # The probe has moved the gates, so these slices are of no more use.
                return 1
        return 0

    def _hand_over(self, pool: Pool, jobs: Sequence[Claimed]) -> None:
        if jobs:
            self._taken(jobs)
            pool.put(jobs)

    def _lease(self) -> Lease:
        return Lease(secrets.randbelow(2**62) + 1, self._name, self._lease_length)
