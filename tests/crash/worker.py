"""A small, complete worker process: claims, runs, renews, finishes until accepted, reclaims and promotes."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import signal
import time
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random

from tests.crash.child import Ears, say
from tests.crash.saboteur import Moment, Saboteur
from windlass.core.job import Claimed, Lease, Slices
from windlass.core.outcome import Finish, Returned, Run, decide
from windlass.core.worker import NewWorker
from windlass.errors import StoreUnavailable
from windlass.process import current_process
from windlass.store import Store, open_store
from windlass.store.calls.call import Means
from windlass.upkeep.reclaimer import Reclaimer

UPKEEP_S = 0.2
PAUSE_S = 0.02


@dataclass(frozen=True)
class Options:
    """What a worker does; it serves `lanes` (None: every lane) and those it is told to `open`; without slots it only reclaims."""

    url: str
    name: str
    lease_s: float
    slots: int = 8
    lanes: list[str] | None = None


def new_lease(worker: str, seconds: float) -> Lease:
    """Make a lease with a token of its own."""
    return Lease(secrets.randbelow(2**62) + 1, worker, timedelta(seconds=seconds))


async def take(store: Store, found: Slices, limit: int, lease: Lease, *, started: bool = True) -> list[Claimed]:
    """Claim jobs, or a suspect where there are no others."""
    claimed = await store.claim(found, limit, lease, started=started)
    return claimed or await store.claim_suspects(found, 1, lease)


def within(found: Slices, lanes: set[str] | None) -> Slices:
    """Keep only the slices of these lanes."""
    return found if lanes is None else found.select(lambda part: part.lane in lanes)


class Running:
    """A claimed job and the database time that passes while it is held."""

    def __init__(self, job: Claimed) -> None:
        self.job = job
        self.started_at: datetime | None = None
        self._taken = time.monotonic()

    def now(self) -> datetime:
        return self.job.claimed_at + timedelta(seconds=time.monotonic() - self._taken)

    @property
    def lease(self) -> tuple[int, int, datetime | None]:
        return self.job.id, self.job.token, self.started_at


class Worker:
    """Works until its process ends."""

    def __init__(self, store: Store, options: Options, saboteur: Saboteur) -> None:
        self._store = store
        self._saboteur = saboteur
        self._options = options
        self._lanes = None if options.lanes is None else set(options.lanes)
        self._reclaimer = Reclaimer(store, lease=timedelta(seconds=options.lease_s))
        self._held: dict[tuple[int, int], Running] = {}
        self._endings: asyncio.Queue[Finish] = asyncio.Queue(1000)

    async def work(self, ears: Ears) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._listen(ears))
            group.create_task(self._upkeep())
            group.create_task(self._renew())
            group.create_task(self._finish())
            group.create_task(self._claim(group))

    async def _listen(self, ears: Ears) -> None:
        while True:
            word, _, lane = (await ears.hear()).partition(" ")
            if word == "doze":
                # In the middle of a reclaim: its process was in contact when it began, and no longer is when it goes on.
                self._saboteur.arm(doze)
            elif self._lanes is not None:
                self._lanes.add(lane)

    async def _claim(self, group: asyncio.TaskGroup) -> None:
        while True:
            claimed = await self._take()
            for job in claimed:
                self._held[job.id, job.token] = running = Running(job)
                group.create_task(self._run(running))
            if not claimed:
                await asyncio.sleep(PAUSE_S)

    async def _take(self) -> list[Claimed]:
        free = self._options.slots - len(self._held)
        if free < 1:
            return []
        try:
            found = within(await self._store.slices(), self._lanes)
            return await take(self._store, found, free, new_lease(self._options.name, self._options.lease_s), started=False)
        except StoreUnavailable:
            return []

    async def _run(self, running: Running) -> None:
        running.started_at = running.now()
        say("ran", running.job.id)
        await asyncio.sleep(json.loads(running.job.payload).get("seconds", 0))
        now = running.now()
        run = Run(started_at=running.started_at, finished_at=now)
        await self._endings.put(decide(running.job, Returned(), run, now=now, rng=Random()))

    async def _finish(self) -> None:
        while True:
            batch = [await self._endings.get()]
            while not self._endings.empty():
                batch.append(self._endings.get_nowait())
            accepted = await self._finish_until_heard(batch)
            for ending in batch:
                del self._held[ending.id, ending.token]
                say("finished" if ending.id in accepted else "refused", ending.id)

    async def _finish_until_heard(self, batch: list[Finish]) -> set[int]:
        while True:
            try:
                return set(await self._store.finish(batch))
            except StoreUnavailable:
                await asyncio.sleep(PAUSE_S)

    async def _renew(self) -> None:
        while True:
            length = timedelta(seconds=self._options.lease_s)
            if leases := [running.lease for running in self._held.values()]:
                try:
                    kept = {(held.id, held.token) for held in await self._store.renew(leases, length)}
                except StoreUnavailable:
                    await asyncio.sleep(PAUSE_S)
                    continue
                for job_id, token, _ in leases:
                    # One that was finished while the renewal was under way is not lost.
                    if (job_id, token) not in kept and (job_id, token) in self._held:
                        say("lost", job_id)
            await asyncio.sleep(self._options.lease_s / 3)

    async def _upkeep(self) -> None:
        while True:
            try:
                for job_id in await self._reclaimer.round():
                    say("reclaimed", job_id)
                say("round")
                if self._options.slots:
                    await self._store.promote()
            except StoreUnavailable:
                say("cut off")
            await asyncio.sleep(UPKEEP_S)


def doze() -> None:
    """Stop this process as a suspended machine would, until somebody continues it."""
    say("dozing")
    os.kill(os.getpid(), signal.SIGSTOP)
    # The signal may reach another thread first.
    time.sleep(0.05)


async def main(options: Options) -> None:
    """Work until killed."""
    saboteur = Saboteur(open_store(options.url, rng=Random()).database, "lapsed", Moment.BEFORE)
    store = Store(saboteur, Means(Random()))
    process = current_process()
    await store.workers.register(NewWorker(id=options.name, host="h", pid=os.getpid(), version="1", process=process))
    ears = Ears()
    await ears.ready()
    await Worker(store, options, saboteur).work(ears)
