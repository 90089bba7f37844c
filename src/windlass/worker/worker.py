"""A worker: claims jobs for its pools and keeps them alive until they have ended."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Mapping, Sequence
from random import Random

from windlass.core.job import Claimed, Held, JobState, Lease, Slices
from windlass.core.outcome import NO_RUN, Finish, Outcome, Released, Stopped, decide
from windlass.core.pool import EVERY_LANE
from windlass.core.topic import Topic
from windlass.errors import StoreError
from windlass.ports import Clock, Store
from windlass.worker.acker import Acker
from windlass.worker.flight import Flight, Why
from windlass.worker.heart import Beat, Heart, Hold
from windlass.worker.logs import LogCapture
from windlass.worker.news import News
from windlass.worker.options import WorkerOptions
from windlass.worker.pool import Pool
from windlass.worker.program import Program
from windlass.worker.sentry import Sentry
from windlass.worker.slot import Kit, Slot

log = logging.getLogger("windlass.worker")

_MOMENT_S = 0.001
_WATCH_S = 0.05
_AFTER_FAILURE_S = 0.5
_LAST_ACKS_S = 5.0


class Worker:
    """Runs the jobs of its pools until it is told to stop."""

    def __init__(
        self,
        store: Store,
        blocking_store: Store,
        program: Program,
        *,
        clock: Clock,
        rng: Random,
        name: str,
        options: WorkerOptions | None = None,
    ) -> None:
        """Run `program` under `name`; `blocking_store` is the same store for the heart's thread."""
        self.name = name
        self._store = store
        self._options = options or WorkerOptions()
        self._registry = program.registry
        self._clock = clock
        self._rng = rng
        self._profiles = program.profiles
        self._held: dict[int, Hold] = {}
        self._slices: Slices | None = None
        self._wake = asyncio.Event()
        self._stopping = asyncio.Event()
        self._is_hurried = False
        self._loop = asyncio.get_running_loop()
        self._recordings: set[asyncio.Task[None]] = set()
        self._sentry = Sentry(store)
        self._news = News(program.hooks)
        self._acker = Acker(store, rng=rng, is_busy=self._is_busy, told=self._told)
        self._kit = Kit(
            program=program,
            store=store,
            clock=clock,
            rng=rng,
            options=self._options,
            started=self._started,
            ended=self._ended,
        )
        # Lanes of their own first, so that they are served before the pool that takes anything.
        ordered = sorted(self._options.pools, key=lambda spec: spec.lane == EVERY_LANE)
        self._pools = [Pool(spec, self._kit, self._acker, hungry=self._wake.set, release=self._release) for spec in ordered]
        self._heart = Heart(blocking_store, lease=self._options.lease, leases=self._leases, heard=self._heard)
        self.is_worn = False
        """Whether the worker stopped itself because too many handlers would not stop; its process should be replaced."""

    @property
    def has_lost(self) -> bool:
        """Whether handlers that would not stop still run."""
        return self._kit.lost_threads.alive > 0 or any(pool.lost for pool in self._pools)

    @property
    def running(self) -> int:
        """How many jobs run now."""
        return len(self._flying())

    def wake(self, topic: Topic = Topic.WORK) -> None:
        """Look for work now, or ask whether running jobs were cancelled."""
        if topic is Topic.CONTROL:
            self._heart.beat()
        elif topic is Topic.WORK:
            self._slices = None
            self._wake.set()

    @property
    def is_idle(self) -> bool:
        """Whether it holds no job and the store has heard of every end."""
        return not self._held and not self._acker.waiting

    async def idle(self) -> None:
        """Wait until it is idle; what has ended is sent at once and not in full batches."""
        while not self.is_idle:
            await self._acker.drain()
            await asyncio.sleep(_MOMENT_S)

    def stop(self) -> None:
        """End in order: claim nothing more, let running jobs finish within the grace, give back the rest."""
        self._stopping.set()
        self._wake.set()

    def hurry(self) -> None:
        """End now: running jobs are stopped and given back."""
        self._is_hurried = True
        self.stop()

    async def stopped(self) -> None:
        """Wait until somebody tells the worker to stop."""
        await self._stopping.wait()

    async def run(self) -> None:
        """Work until stopped; everything claimed is finished or given back when this returns."""
        capture = LogCapture()
        logging.getLogger().addHandler(capture)
        self._heart.start()
        for pool in self._pools:
            pool.start()
        try:
            async with asyncio.TaskGroup() as group:
                acker = group.create_task(self._acker.run())
                watcher = group.create_task(self._watch())
                await self._feed()
                await self._wind_down()
                watcher.cancel()
                acker.cancel()
        finally:
            await asyncio.to_thread(self._heart.close)
            logging.getLogger().removeHandler(capture)

    async def _feed(self) -> None:
        """Claim for hungry pools until told to stop; a claim under way is always heard to its end."""
        while not self._stopping.is_set():
            # Cleared before looking, so that nothing that comes after the look is missed.
            self._wake.clear()
            try:
                is_served = await self._fill()
            except StoreError as error:
                log.warning("no jobs can be claimed: %s", error)
                self._slices = None
                await self._pause(_AFTER_FAILURE_S)
                continue
            if is_served:
                await self._pause(self._options.poll_interval.total_seconds())

    async def _pause(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._wake.wait()
        except TimeoutError:
            self._slices = None

    async def _fill(self) -> bool:
        """Claim for every hungry pool; says whether there is nothing more to get for them now."""
        hungry = [pool for pool in self._pools if pool.wants]
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
        return not any(pool.wants for pool in self._pools)

    async def _claim(self, pool: Pool, slices: Slices, wanted: int) -> int:
        mine = pool.select(slices, self._registry.names)
        claimed = (
            await self._store.claim(mine, wanted, self._lease(), started=pool.runs_at_once(wanted)) if mine.claimable else []
        )
        self._take(pool, claimed)
        if len(claimed) < wanted:
            return len(claimed) + await self._claim_probes(pool, mine)
        return len(claimed)

    async def _claim_probes(self, pool: Pool, slices: Slices) -> int:
        """Try services whose breakers are due to be tried, each with one job over the whole fleet."""
        for breaker in slices.breakers:
            probe = await self._store.claim_probe(slices, breaker, self._lease())
            if probe is not None:
                self._sentry.expect(probe)
                self._take(pool, [probe])
                # The probe has moved the gates, so these slices are of no more use.
                return 1
        return 0

    def _lease(self) -> Lease:
        return Lease(secrets.randbelow(2**62) + 1, self.name, self._options.lease)

    def _take(self, pool: Pool, jobs: Sequence[Claimed]) -> None:
        if jobs:
            self._clock.note(jobs[0].claimed_at)
        for job in jobs:
            self._held[job.id] = Hold(job.id, job.token, None)
        pool.put(jobs)

    def _is_busy(self) -> bool:
        return any(pool.is_busy for pool in self._pools)

    def _leases(self) -> Sequence[Hold]:
        # A copy is one step of the interpreter; the loop goes on changing the original meanwhile.
        return list(self._held.copy().values())

    def _started(self, flight: Flight) -> None:
        job = flight.job
        flight.safe_until = flight.deadline - flight.timeout.total_seconds() + self._options.lease.total_seconds()
        self._held[job.id] = Hold(job.id, job.token, flight.started_at)
        self._news.started(flight)
        if log.isEnabledFor(logging.INFO):
            log.info("job started")

    def _ended(self, flight: Flight, outcome: Outcome | None) -> None:
        job = flight.job
        now = self._clock.now()
        run = flight.measured(now)
        if outcome is None:
            self._held.pop(job.id, None)
            if flight.why is Why.CANCELLED:
                self._acker.add_stop((job.id, job.token, run))
            return
        ending = decide(job, outcome, run, now=now, rng=self._rng, profiles=self._profiles)
        if self._sentry.must_tell(flight):
            task = asyncio.create_task(self._record(flight, ending))
            self._recordings.add(task)
            task.add_done_callback(self._recordings.discard)
        else:
            self._acker.add(ending)
        _tell(ending)

    async def _record(self, flight: Flight, ending: Finish) -> None:
        """Tell the breaker before the run is finished: with the lease goes the right to speak for the probe."""
        is_open = await self._sentry.tell(flight)
        self._acker.add(ending)
        if is_open and flight.spec.breaker is not None:
            name = flight.spec.breaker.name
            gated = {spec.name for spec in self._registry if spec.breaker is not None and spec.breaker.name == name}
            for pool in self._pools:
                pool.give_back(lambda job: job.task in gated)

    def _release(self, job: Claimed) -> None:
        self._acker.add(decide(job, Released(), now=self._clock.now(), rng=self._rng))

    def _told(self, endings: Sequence[Finish], accepted: Mapping[int, JobState]) -> None:
        for ending in endings:
            hold = self._held.get(ending.id)
            if hold is not None and hold.token == ending.token:
                del self._held[ending.id]
            state = accepted.get(ending.id)
            self._news.ended(ending, state)
            if state is None:
                log.warning("the end of a run came too late: its lease had gone", extra={"job_id": ending.id})

    def _heard(self, beat: Beat) -> None:
        self._loop.call_soon_threadsafe(self._on_beat, beat, self._clock.monotonic())

    def _on_beat(self, beat: Beat, at: float) -> None:
        held = {lease.id: lease for lease in beat.held}
        flying = {slot.flight.job.id: slot for slot in self._flying() if slot.flight is not None}
        for hold in beat.asked:
            mine = self._held.get(hold.id)
            if mine is None or mine.token != hold.token:
                # It ended while the heart was asking.
                continue
            why = _why(hold, held.get(hold.id))
            slot = flying.get(hold.id)
            if slot is None:
                self._withdraw(hold, why)
            elif why is not None:
                slot.stop(why)
            elif slot.flight is not None:
                slot.flight.safe_until = at + self._options.lease.total_seconds()

    def _withdraw(self, hold: Hold, why: Why | None) -> None:
        """Forget a job that waits for a slot and is wanted no more; one whose end is on its way is left alone."""
        job = None if why is None else next(filter(None, (pool.withdraw(hold.id) for pool in self._pools)), None)
        if job is None:
            return
        if why is Why.STOPPED:
            self._acker.add(decide(job, Stopped(has_started=False), now=self._clock.now(), rng=self._rng))
            return
        del self._held[job.id]
        if why is Why.CANCELLED:
            self._acker.add_stop((job.id, job.token, NO_RUN))

    def _flying(self) -> list[Slot]:
        return [slot for pool in self._pools for slot in pool.flying]

    async def _watch(self) -> None:
        """Look after deadlines: nothing is set up for a single job."""
        while True:
            await asyncio.sleep(_WATCH_S)
            now = self._clock.monotonic()
            for slot in self._flying():
                self._watch_slot(slot, now)
            for pool in self._pools:
                pool.watch(now)
            lost = self._kit.lost_threads.alive + sum(pool.lost for pool in self._pools)
            if lost > self._options.most_lost_threads and not self.is_worn:
                log.warning("%d handlers would not stop and still run; this worker ends so that a fresh one can start", lost)
                self.is_worn = True
                self.stop()

    def _watch_slot(self, slot: Slot, now: float) -> None:
        flight = slot.flight
        if flight is None:
            return
        if flight.why is None:
            if now >= flight.deadline:
                slot.stop(Why.TIMED_OUT)
            elif flight.spec.is_exclusive and now >= flight.safe_until:
                slot.stop(Why.LOST)
        elif now >= flight.told_at + self._options.stop_grace.total_seconds():
            slot.give_up()

    async def _wind_down(self) -> None:
        """Let running jobs finish within the grace, then stop them, then send the last reports."""
        for pool in self._pools:
            pool.close()
        await self._landed(self._options.grace.total_seconds())
        for slot in self._flying():
            slot.stop(Why.SHUTDOWN)
        await self._landed(self._options.stop_grace.total_seconds())
        for slot in self._flying():
            slot.give_up()
        self._is_hurried = False
        await self._landed(self._options.stop_grace.total_seconds())
        try:
            async with asyncio.timeout(_LAST_ACKS_S):
                while self._recordings:
                    await asyncio.wait(self._recordings)
                await self._acker.drain()
        except TimeoutError:
            log.error("%d reports could not be sent; their leases will run out", self._acker.waiting)  # noqa: TRY400
        await self._news.settle()

    async def _landed(self, within: float) -> None:
        """Wait until nothing runs, for so many seconds, or until told to hurry."""
        late = self._clock.monotonic() + within
        for pool in self._pools:
            while not pool.is_done and self._clock.monotonic() < late and not self._is_hurried:
                await pool.done(_WATCH_S)


def _why(hold: Hold, lease: Held | None) -> Why | None:
    """Say why a run must end, if it must."""
    if lease is None or lease.token != hold.token:
        return Why.LOST
    if lease.should_stop:
        return Why.CANCELLED if lease.is_cancelled else Why.STOPPED
    return None


def _tell(ending: Finish) -> None:
    """Write what became of a run into the log, with the seeds' words."""
    if ending.failure is None:
        if log.isEnabledFor(logging.INFO):
            crawled = {} if ending.run.items_crawled is None else {"items_crawled": ending.run.items_crawled}
            log.info("job completed" if ending.state is JobState.COMPLETED else "job run ended", extra=crawled)
        return
    retry_in = None if ending.delay is None else f"{ending.delay.total_seconds():.3g}s"
    log.warning("job failed", extra={"error": ending.failure.message, "state": ending.state.value, "retry_in": retry_in})
