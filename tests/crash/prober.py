"""A worker that tries breakers: it holds each probe until it is told how the probe went, or fails them all by itself."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from random import Random

from tests.crash.child import Ears, say
from tests.crash.worker import PAUSE_S, Running, new_lease, take
from windlass.core.breaker import BreakerSpec
from windlass.core.job import Claimed
from windlass.core.outcome import Outcome, Released, Returned, Run, decide
from windlass.store import Store, open_store
from windlass.upkeep.reclaimer import Reclaimer

SPEC = BreakerSpec("service", threshold=1, open_for=timedelta(milliseconds=1))


@dataclass(frozen=True)
class Options:
    """How to work; `probes` makes it fail every probe at once, until it has made so many."""

    url: str
    name: str
    lease_s: float
    probes: int | None = None


class Prober:
    """Claims what is open and tries what is due, one after the other."""

    def __init__(self, store: Store, options: Options) -> None:
        self._store = store
        self._options = options
        self._length = timedelta(seconds=options.lease_s)
        self._reclaimer = Reclaimer(store, lease=self._length)

    async def work(self, ears: Ears) -> None:
        """Go on until the process ends."""
        while True:
            await self._reclaimer.round()
            await self._store.promote()
            job = await self._probe()
            if job is not None:
                say("probe", job.id)
                word = await self._told(ears, job)
                say("told", word)
                await self._end_probe(job, succeeded=word == "succeed")
            found = await self._store.slices()
            for claimed in await take(self._store, found, 1, new_lease(self._options.name, self._options.lease_s)):
                await self._end(claimed, Returned())
                say("ran", claimed.id)
            say("looked")
            await asyncio.sleep(PAUSE_S)

    async def churn(self, probes: int) -> None:
        """Fail every probe at once: all processes try for the same permit again and again."""
        while probes:
            await self._store.promote()
            job = await self._probe()
            if job is not None:
                probes -= 1
                await self._end_probe(job, succeeded=False)
        say("done")

    async def _probe(self) -> Claimed | None:
        found = await self._store.slices()
        for breaker in found.breakers:
            lease = new_lease(self._options.name, self._options.lease_s)
            job = await self._store.claim_probe(found, breaker, lease)
            if job is not None:
                return job
        return None

    async def _told(self, ears: Ears, job: Claimed) -> str:
        """Hold the lease until the word comes."""
        hearing = asyncio.ensure_future(ears.hear())
        while not hearing.done():
            await self._store.renew([(job.id, job.token, job.claimed_at)], self._length)
            await asyncio.wait([hearing], timeout=self._options.lease_s / 10)
        return hearing.result()

    async def _end_probe(self, job: Claimed, *, succeeded: bool) -> None:
        await self._store.breakers.record(SPEC, succeeded=succeeded, job_id=job.id, token=job.token)
        await self._end(job, Returned() if succeeded else Released(has_started=True))

    async def _end(self, job: Claimed, outcome: Outcome) -> None:
        now = Running(job).now()
        ending = decide(job, outcome, Run(job.claimed_at, now), now=now, rng=Random())
        assert await self._store.finish([ending]), "a lease was lost in a healthy process"


async def main(options: Options) -> None:
    """Work until killed, or until it has made the probes asked for."""
    store = open_store(options.url, rng=Random())
    await store.clock()
    ears = Ears()
    await ears.ready()
    prober = Prober(store, options)
    if options.probes is None:
        await prober.work(ears)
    else:
        await prober.churn(options.probes)
    await store.aclose()
