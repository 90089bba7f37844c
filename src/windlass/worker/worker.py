"""A worker: claims jobs for its pools and keeps them alive until they have ended."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Sequence
from contextvars import copy_context
from functools import partial
from random import Random
from typing import Any

from windlass.core.current import CurrentJob
from windlass.core.job import Claimed
from windlass.core.outcome import Decide, Ending, decide
from windlass.core.pool import EVERY_LANE
from windlass.core.topic import Topic
from windlass.ports import Clock, Renewals, Work
from windlass.worker.feeder import Feeder
from windlass.worker.heart import Beat, Heart
from windlass.worker.held_jobs import HeldJobs
from windlass.worker.log_recorder import LogRecorder
from windlass.worker.logs import LogCapture
from windlass.worker.loop_watch import LoopWatch
from windlass.worker.pool import Pool
from windlass.worker.program import Program, WorkerOptions
from windlass.worker.quarantine import Quarantine
from windlass.worker.replacement import Replacement
from windlass.worker.run import ActiveRun, Why
from windlass.worker.run_tasks import tracked_tasks
from windlass.worker.slot import SharedParts, Slot
from windlass.worker.worker_log import log

_MOMENT_S = 0.001
_WATCH_S = 0.05
_IDLE_WATCH_S = 0.2
"""How often deadlines are looked at while nothing runs: the first one to come may be seen this late."""
_REST_AFTER_S = 2.0
"""How long nothing is held before the looks end until the next claim: a job now and then wakes no thread for them."""
_LAST_ACKS_S = 2.0
"""How long killed processes may take to end and the last reports to be sent."""
_KILLED_S = 1.0
_KILLED_IN_A_HURRY_S = 0.5
_LAST_BEAT_S = 0.5
# The threads of the store need the interpreter for moments, between statements; by default they would wait 5 ms for each.
_TURN_S = 0.0005


class Worker:
    """Runs the jobs of its pools until it is asked to stop."""

    def __init__(
        self,
        store: Work,
        blocking_store: Renewals,
        program: Program,
        *,
        clock: Clock,
        rng: Random,
        name: str,
        options: WorkerOptions | None = None,
        decide: Decide = decide,
        replacement: Replacement | None = None,
        is_notified: bool = False,
    ) -> None:
        """Run `program` under `name`; `blocking_store` is the same store for the heart's thread.

        `store` finishes a run with what `decide` returns for it. With a `replacement` the process is replaced when a
        handler blocks the event loop beyond its timeout and the grace. With `is_notified` the upkeep, or another component,
        calls `wake` in every poll interval in which anything is pending.
        """
        self.name = name
        self._options = options or WorkerOptions()
        self._clock = clock
        self._stopping = asyncio.Event()
        self._is_hurried = False
        self._last_limit: asyncio.Timeout | None = None
        """Until when the last reports are waited for."""
        self._loop = asyncio.get_running_loop()
        self._pools: list[Pool] = []
        lease_s = self._options.lease.total_seconds()
        self._held_jobs = held_jobs = HeldJobs(store, program, self._pools, clock=clock, rng=rng, decide=decide, lease_s=lease_s)
        self._feeder = feeder = Feeder(
            store,
            program.registry,
            self._options,
            name=name,
            monotonic=clock.monotonic,
            taken=self._taken,
            release=held_jobs.release,
            is_probe=held_jobs.breaker_watch.expect,
            is_notified=is_notified,
        )
        self._shared = SharedParts(
            program=program,
            store=store,
            clock=clock,
            rng=rng,
            options=self._options,
            context=copy_context(),
            lease_times=held_jobs.lease_times,
            started=held_jobs.started,
            ended=held_jobs.ended,
            completed=held_jobs.completed,
        )
        # Lanes of their own first, so that they are served before the pool that takes anything.
        specs = sorted(self._options.pools, key=lambda spec: spec.lane == EVERY_LANE)
        self._fed = [
            Pool(spec, self._shared, held_jobs.acker, wants_jobs=feeder.wants_jobs, release=held_jobs.release) for spec in specs
        ]
        self._quarantine = Quarantine(
            self._shared, held_jobs.acker, self._fed, wants_jobs=feeder.wants_jobs, release=held_jobs.release
        )
        self._pools += [*self._fed, self._quarantine.pool]
        self._heart = Heart(
            blocking_store,
            lease=self._options.lease,
            leases=held_jobs.leases,
            answered=self._answered,
            renewed=LogRecorder(blocking_store, held_jobs.long_logs).record,
            monotonic=clock.monotonic,
        )
        self._replacement = replacement
        self._loop_watch = LoopWatch(
            self._loop,
            running=self._active_of,
            overdue=self._replace,
            grace_s=self._options.grace.total_seconds(),
            monotonic=clock.monotonic,
        )
        self._claimed = asyncio.Event()
        """Set when there is something to watch again."""
        self.is_worn = False
        """Whether the worker stopped itself because too many handlers would not stop; its process should be replaced."""

    @property
    def has_lost(self) -> bool:
        """Whether handlers that would not stop still run."""
        return self._lost > 0 or self.holds_runs

    @property
    def holds_runs(self) -> bool:
        """Whether runs are held that were not reported: once the worker has ended, they go on until its process ends."""
        return any(slot.has_unreported for slot in self._held_jobs.busy_slots)

    @property
    def running(self) -> int:
        """How many jobs run now."""
        return len(list(self._held_jobs.busy_slots))

    @property
    def loop_blocks(self) -> int:
        """How many times a handler was found to block the event loop."""
        return self._loop_watch.blocks

    def wake(self, topic: Topic = Topic.WORK) -> None:
        """Look for work now, or ask whether running jobs were cancelled."""
        if topic is Topic.CONTROL:
            self._heart.beat()
        elif topic is Topic.WORK:
            self._feeder.look()

    def pause_claims(self) -> None:
        """Claim nothing more until it is resumed; what was claimed is run."""
        if not self._feeder.is_paused:
            log.warning("worker %s claims nothing more until an operator lets it; %d jobs still run", self.name, self.running)
            self._feeder.is_paused = True

    def resume_claims(self) -> None:
        """Claim again."""
        if self._feeder.is_paused:
            log.info("worker %s claims again", self.name)
            self._feeder.is_paused = False
            self._feeder.look()

    @property
    def is_idle(self) -> bool:
        """Whether it holds no job and the store has recorded every end."""
        return self._held_jobs.is_clear

    async def idle(self) -> None:
        """Wait until it is idle; what has ended is sent at once and not in full batches."""
        while not self.is_idle:
            await self._held_jobs.acker.drain()
            await asyncio.sleep(_MOMENT_S)

    def stop(self) -> None:
        """End in order: claim nothing more, let running jobs finish within the grace, give back the rest."""
        self._stopping.set()
        self._feeder.close()

    def hurry(self) -> None:
        """End now: running jobs are stopped and given back."""
        self._is_hurried = True
        self._end_soon()
        self.stop()

    async def stopped(self) -> None:
        """Wait until the worker is asked to stop."""
        await self._stopping.wait()

    async def run(self) -> None:
        """Work until stopped; everything claimed is finished or given back when this returns."""
        capture = LogCapture()
        logging.getLogger().addHandler(capture)
        turn_s = sys.getswitchinterval()
        sys.setswitchinterval(min(turn_s, _TURN_S))
        self._heart.start()
        self._loop_watch.start()
        for pool in self._pools:
            pool.start()
        try:
            with tracked_tasks(self._loop):
                await self._work()
        finally:
            self._loop_watch.close()
            await asyncio.to_thread(self._heart.close, _LAST_BEAT_S)
            sys.setswitchinterval(turn_s)
            logging.getLogger().removeHandler(capture)

    async def _work(self) -> None:
        async with asyncio.TaskGroup() as group:
            acker = group.create_task(self._held_jobs.acker.run())
            watcher = group.create_task(self._watch())
            feeder = group.create_task(self._feeder.run(self._fed, self._quarantine))
            await self._stopping.wait()
            await self._wind_down(feeder)
            watcher.cancel()
            acker.cancel()

    def _taken(self, jobs: Sequence[Claimed], asked_at: float) -> None:
        self._held_jobs.taken(jobs, asked_at)
        if not self._claimed.is_set():
            # Now, and not on the watching task: the first of these may block the loop.
            self._loop_watch.tick()
            self._claimed.set()

    def _answered(self, beat: Beat) -> None:
        self._held_jobs.renewed(beat)
        self._loop.call_soon_threadsafe(self._held_jobs.answered, beat)

    def _active_of(self, task: asyncio.Task[Any]) -> ActiveRun | None:
        """Find the run that an asyncio task belongs to; from any thread."""
        actives = (slot.active for slot in self._held_jobs.busy_slots if slot.is_of(task))
        return next(actives, None)

    def _replace(self, active: ActiveRun) -> None:
        """Replace the process, on the watching thread: the loop is blocked by a run that should have ended."""
        if self._replacement is None:
            log.error(
                "task %r blocks the event loop beyond its timeout, and only the end of the process can stop it",
                active.job.task,
                extra=CurrentJob.of(active.job).log_fields,
            )
            return
        log.error(
            "task %r blocks the event loop beyond its timeout; this process is replaced",
            active.job.task,
            extra=CurrentJob.of(active.job).log_fields,
        )
        self._replacement.record_blocks(self.name, self.loop_blocks)
        self._replacement.replace(partial(self._last_endings, active))

    def _last_endings(self, blocking: ActiveRun) -> Sequence[Ending]:
        endings = self._held_jobs.last_endings(blocking)
        self._held_jobs.log_end(blocking, endings)
        return endings

    @property
    def _lost(self) -> int:
        return self._shared.lost_threads.alive + sum(pool.lost for pool in self._pools)

    async def _watch(self) -> None:
        """Look after deadlines: nothing is set up for a single job."""
        rests_at = self._clock.monotonic() + _REST_AFTER_S
        while True:
            is_idle = next(self._held_jobs.busy_slots, None) is None
            await asyncio.sleep(_IDLE_WATCH_S if is_idle else _WATCH_S)
            self._loop_watch.tick()
            now = self._clock.monotonic()
            for slot in self._held_jobs.busy_slots:
                self._watch_slot(slot, now)
            for pool in self._pools:
                pool.watch(now)
            lost = self._lost
            if lost > self._options.most_lost_threads and not self.is_worn:
                log.warning("%d handlers would not stop and still run; this worker ends so that a fresh one can start", lost)
                self.is_worn = True
                self.stop()
            if lost or not self._is_at_rest:
                rests_at = now + _REST_AFTER_S
            elif now >= rests_at:
                await self._rest()
                rests_at = self._clock.monotonic() + _REST_AFTER_S

    @property
    def _is_at_rest(self) -> bool:
        return self.is_idle and all(pool.is_at_rest for pool in self._pools)

    async def _rest(self) -> None:
        """Watch nothing until the next claim."""
        self._loop_watch.rest()
        self._claimed.clear()
        await self._claimed.wait()

    def _watch_slot(self, slot: Slot, now: float) -> None:
        active = slot.active
        if active is None:
            return
        if active.why is None:
            if now >= active.deadline:
                slot.stop(active, Why.TIMED_OUT)
            elif active.spec.is_exclusive and now >= self._held_jobs.lease_times.until(active.token):
                # Given back once it has stopped: if the lease is still free by then, no worker has to wait for its end.
                slot.stop(active, Why.EXPIRED)
        elif now >= active.asked_at + self._options.stop_grace.total_seconds():
            slot.give_up()

    async def _wind_down(self, feeder: asyncio.Task[None]) -> None:
        """Let running jobs finish within the grace, then stop them, then send the last reports."""
        late = self._clock.monotonic() + self._options.grace.total_seconds()
        for pool in self._pools:
            pool.close()
        # A claim that is under way is awaited, so that its jobs are given back; a database that does not answer is
        # waited for no longer than the handlers are.
        await self._wait_for_runs(self._options.grace.total_seconds(), feeder)
        for slot in self._held_jobs.busy_slots:
            if slot.active is not None:
                slot.stop(slot.active, Why.SHUTDOWN)
        await self._wait_for_runs(self._options.stop_grace.total_seconds())
        for slot in self._held_jobs.busy_slots:
            slot.give_up()
        feeder.cancel()
        try:
            # A database that is away may come back within the grace that the runs have left over.
            left_s = 0.0 if self._is_hurried else max(0.0, late - self._clock.monotonic())
            async with asyncio.timeout(left_s + _LAST_ACKS_S) as self._last_limit:
                await self._let_killed_end()
                await self._held_jobs.settle()
                self._end_soon()
                for pool in self._pools:
                    await pool.release_slots()
        except TimeoutError:
            waiting = self._held_jobs.acker.waiting
            if waiting:
                log.error("%d reports could not be sent; their leases will run out", waiting)  # noqa: TRY400
        finally:
            self._last_limit = None

    def _end_soon(self) -> None:
        """Wait for the last reports no longer than the least time there is for them."""
        if self._last_limit is not None:
            limit = self._loop.time() + _LAST_ACKS_S
            self._last_limit.reschedule(min(limit, self._last_limit.when() or limit))

    async def _let_killed_end(self) -> None:
        """Wait until the processes that were killed have ended: a run that is still held when the worker leaves is charged."""
        began = self._clock.monotonic()
        while any(slot.has_unreported for slot in self._held_jobs.busy_slots):
            within = _KILLED_IN_A_HURRY_S if self._is_hurried else _KILLED_S
            if self._clock.monotonic() >= began + within:
                break
            await asyncio.sleep(_MOMENT_S)
        for slot in self._held_jobs.busy_slots:
            slot.give_up(is_last=True)

    async def _wait_for_runs(self, within: float, claiming: asyncio.Task[None] | None = None) -> None:
        """Wait until nothing runs and no claim is under way, for so many seconds, or until asked to hurry."""
        late = self._clock.monotonic() + within
        while not self._is_hurried and self._clock.monotonic() < late:
            if claiming is not None and not claiming.done():
                await asyncio.wait([claiming], timeout=_WATCH_S)
                continue
            pool = next((pool for pool in self._pools if not pool.is_done), None)
            if pool is None:
                return
            await pool.done(_WATCH_S)
