"""A worker that takes a large batch and dies of the job in it that is poison."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import dataclass
from datetime import timedelta
from random import Random

from tests.crash.child import Ears, die, say
from tests.crash.worker import UPKEEP_S, Running, new_lease, take
from windlass.core.job import CLOSED
from windlass.core.outcome import Finish, Returned, Run, decide
from windlass.store import Store, open_store
from windlass.upkeep.reclaimer import Reclaimer


@dataclass(frozen=True)
class Options:
    """How to work: `reports` says of each job that it has started, and finishes it before the next."""

    url: str
    name: str
    lease_s: float
    batch: int
    reports: bool


class FragileWorker:
    """Runs what it claims one after the other."""

    def __init__(self, store: Store, options: Options) -> None:
        self._store = store
        self._options = options
        self._length = timedelta(seconds=options.lease_s)
        self._reclaimer = Reclaimer(store, lease=self._length)
        self._endings: list[Finish] = []

    async def work(self) -> None:
        """Go on until every job is closed."""
        while not await self._is_done():
            await self._upkeep()
            found = await self._store.slices()
            lease = new_lease(self._options.name, self._options.lease_s)
            claimed = [Running(job) for job in await take(self._store, found, self._options.batch, lease, started=False)]
            if claimed:
                say("claimed", len(claimed))
                await self._run_all(claimed)
            else:
                await asyncio.sleep(UPKEEP_S / 2)

    async def _run_all(self, claimed: list[Running]) -> None:
        renewed = time.monotonic()
        for place, running in enumerate(claimed):
            running.started_at = running.now() if self._options.reports else None
            if self._options.reports or time.monotonic() - renewed > self._options.lease_s / 3:
                await self._store.renew([one.lease for one in claimed[place:]], self._length)
                renewed = time.monotonic()
            if json.loads(running.job.payload).get("poison"):
                die()
            now = running.now()
            self._endings.append(decide(running.job, Returned(), Run(now, now), now=now, rng=Random()))
            if self._options.reports or len(self._endings) >= self._options.batch // 10:
                await self._flush()
        await self._flush()

    async def _flush(self) -> None:
        endings, self._endings = self._endings, []
        assert len(await self._store.finish(endings)) == len(endings), "a lease was lost in a healthy process"

    async def _upkeep(self) -> None:
        for job_id in await self._reclaimer.round():
            say("reclaimed", job_id)
        await self._store.promote()

    async def _is_done(self) -> bool:
        return all(count.state in CLOSED for count in await self._store.count_jobs())


async def main(options: Options) -> None:
    """Work until done or dead."""
    store = open_store(options.url, rng=Random())
    await Ears().ready()
    await FragileWorker(store, options).work()
    await store.aclose()
