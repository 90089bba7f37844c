"""Claims jobs for pools that have room."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Sequence
from datetime import timedelta

from windlass.core.job import Claimed, Lease, Slice, Slices
from windlass.core.task import Registry
from windlass.errors import StoreError
from windlass.ports import Work
from windlass.worker.pool import Pool
from windlass.worker.program import WorkerOptions
from windlass.worker.quarantine import Quarantine
from windlass.worker.worker_log import log

_AFTER_FAILURE_S = 0.5
_MOST_REMEMBERED = 8
"""Slices that an idle worker tries before it looks; more would make its first claim dearer than the look."""
_LOOKS_APART_S = 0.02
"""How soon a wake-up has a worker look again that has found more work than it could take."""
_POLLS_OF_OTHERS = 5
"""How many poll intervals to wait where the upkeep looks in each."""


class Feeder:
    """Looks for work whenever a pool has room, a wake-up comes or the poll interval is over."""

    def __init__(
        self,
        store: Work,
        registry: Registry,
        options: WorkerOptions,
        *,
        name: str,
        monotonic: Callable[[], float],
        taken: Callable[[Sequence[Claimed], float], None],
        release: Callable[[Claimed], None],
        is_probe: Callable[[Claimed], None],
        is_notified: bool,
    ) -> None:
        """Claim in `name` what `registry` has code for.

        `taken` is called with claimed jobs and when they were asked for, `is_probe` with those that try a breaker; `release`
        gives back. With `is_notified` another component calls `look` in every poll interval in which anything is pending.
        """
        self._store = store
        self._tasks = registry.names
        self._lease_length: timedelta = options.lease
        self._poll_s = options.poll_interval.total_seconds()
        self._idle_s = self._poll_s * _POLLS_OF_OTHERS if is_notified else self._poll_s
        self._name = name
        self._monotonic = monotonic
        self._taken = taken
        self._release = release
        self._is_probe = is_probe
        self._slices: Slices | None = None
        self._remembered = Slices(0, ())
        """Slices with work in earlier looks: none of them is gated for as long as the gates have the same version."""
        self._is_woken = False
        """Whether there is new work since the last look."""
        self._has_backlog = False
        """Whether the last claims brought all that was wanted."""
        self._looked_at = 0.0
        self._wake = asyncio.Event()
        self._is_closing = False
        self.is_paused = False
        """Whether nothing is claimed for now."""

    def wants_jobs(self) -> None:
        """Claim for a pool that has room."""
        self._wake.set()

    def look(self) -> None:
        """Look again, as there is new work: what was read of the queue is old."""
        self._is_woken = True
        self._wake.set()

    def close(self) -> None:
        """Claim nothing more."""
        self._is_closing = True
        self._wake.set()

    async def run(self, pools: Sequence[Pool], quarantine: Quarantine) -> None:
        """Claim until closed; a claim under way is always awaited."""
        while not self._is_closing:
            # Cleared before looking, so that nothing that comes after the look is missed.
            self._wake.clear()
            try:
                is_served = await self._fill(pools, quarantine)
            except StoreError as error:
                log.warning("no jobs can be claimed: %s", error)
                self._slices = None
                await self._pause(_AFTER_FAILURE_S)
                continue
            if is_served:
                is_owed_a_look = self._is_woken and self._may_claim(pools, quarantine)
                await self._pause(_LOOKS_APART_S if is_owed_a_look else self._idle_s)

    async def _pause(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._wake.wait()
        except TimeoutError:
            self._slices = None

    async def _fill(self, pools: Sequence[Pool], quarantine: Quarantine) -> bool:
        """Claim for every pool with room; returns whether there is nothing more to claim for them now."""
        if not self._may_claim(pools, quarantine):
            return True
        if self._is_woken and not (self._has_backlog and self._monotonic() < self._looked_at + _LOOKS_APART_S):
            self._is_woken, self._slices = False, None
            if not self._has_backlog:
                await self._claim_at_once(pools, quarantine)
        is_fresh = self._slices is None or self._monotonic() >= self._looked_at + self._poll_s
        slices = await self._look() if self._slices is None or is_fresh else self._slices
        is_short = False
        for pool in pools:
            if wanted := pool.wants:
                is_short |= await self._claim(pool, slices, wanted, quarantine) < wanted
                self._has_backlog = not is_short
        await self._claim_suspects(slices, quarantine)
        if is_short:
            # The slices are used up, or a gate has moved: look again, unless this was such a look.
            self._slices = None
            return is_fresh
        return not any(pool.wants for pool in pools)

    def _may_claim(self, pools: Sequence[Pool], quarantine: Quarantine) -> bool:
        return not self.is_paused and (quarantine.is_free or any(pool.wants for pool in pools))

    async def _look(self) -> Slices:
        # Old slices serve a long backlog well, but would hide a suspect for as long as it lasts.
        self._looked_at = self._monotonic()
        self._slices = found = await self._store.slices()
        self._remember(found)
        return found

    def _remember(self, found: Slices) -> None:
        older = self._remembered.open if self._remembered.version == found.version else ()
        newest: dict[tuple[str, str], Slice] = {}
        for part in (*found.claimable, *older):
            newest.setdefault((part.lane, part.task), part)
        self._remembered = Slices(found.version, tuple(newest.values())[:_MOST_REMEMBERED])

    async def _claim_at_once(self, pools: Sequence[Pool], quarantine: Quarantine) -> None:
        """Take the one job that has probably woken an idle worker, a round trip sooner than by looking first.

        One only, and only where nothing waits: what else has come since is then claimed in its order.
        """
        for pool in pools:
            if pool.is_idle and pool.wants:
                await self._claim(pool, self._remembered, 1, quarantine)

    async def _claim(self, pool: Pool, slices: Slices, wanted: int, quarantine: Quarantine) -> int:
        mine = pool.select(slices, self._tasks)
        asked_at = self._monotonic()
        claimed = (
            await self._store.claim(mine, wanted, self._lease(), started=pool.runs_at_once(wanted)) if mine.claimable else []
        )
        if claimed:
            self._go_on_behind(claimed)
            self._taken(claimed, asked_at)
            pool.put(claimed)
        if len(claimed) < wanted:
            return len(claimed) + await self._claim_probes(pool, mine, quarantine)
        return len(claimed)

    def _go_on_behind(self, claimed: Sequence[Claimed]) -> None:
        """Begin the next claims where these jobs stood; what comes to stand before them is found by the next look."""
        if self._slices is None:
            self._remembered = self._remembered.behind(claimed)
        else:
            # Each look remembers where these begin, so that one of the two is enough.
            self._slices = self._slices.behind(claimed)

    async def _claim_probes(self, pool: Pool, slices: Slices, quarantine: Quarantine) -> int:
        """Try services whose breakers are due to be tried, each with one job over the whole fleet."""
        for breaker in slices.breakers:
            asked_at = self._monotonic()
            probe = await self._store.claim_probe(slices, breaker, self._lease())
            if probe is None:
                continue
            self._taken([probe], asked_at)
            if not probe.crashes:
                self._is_probe(probe)
                pool.put([probe])
            elif quarantine.make_room():
                self._is_probe(probe)
                quarantine.put([probe], asked_at)
            else:
                self._release(probe)
            # The probe has moved the gates, so these slices are of no more use.
            return 1
        return 0

    async def _claim_suspects(self, slices: Slices, quarantine: Quarantine) -> None:
        """Take jobs that may have killed a worker, as many as there are safe places for."""
        mine = quarantine.select(slices, self._tasks)
        if not mine.claimable_suspects:
            quarantine.clear()
            return
        room = quarantine.make_room()
        if not room:
            return
        asked_at = self._monotonic()
        suspects = await self._store.claim_suspects(mine, room, self._lease())
        if suspects:
            self._taken(suspects, asked_at)
            quarantine.put(suspects, asked_at)
        else:
            quarantine.let_go()
        if len(suspects) < room:
            # Others have taken them, or a gate has moved.
            self._slices = None

    def _lease(self) -> Lease:
        return Lease(secrets.randbelow(2**62) + 1, self._name, self._lease_length)
