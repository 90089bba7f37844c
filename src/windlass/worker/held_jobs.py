"""The jobs a worker holds leases on, from their claim until the store has accepted their end."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextvars import copy_context
from datetime import datetime, timedelta
from random import Random

from windlass.core import outcome as outcomes
from windlass.core.current import CurrentJob, RunningJob, current_run
from windlass.core.job import Claimed, Held, JobState
from windlass.core.outcome import NO_RUN, Completed, Decide, Ending, Finish, Outcome, Released, Returned, Run, Stopped
from windlass.ports import Clock, Work
from windlass.telemetry import STACK_TRACE
from windlass.worker.acker import Acker
from windlass.worker.breaker_watch import BreakerWatch
from windlass.worker.heart import BEATS_PER_LEASE, Beat, Hold
from windlass.worker.hooks import HookCalls
from windlass.worker.lease_times import LeaseTimes
from windlass.worker.log_recorder import RunLog
from windlass.worker.pool import Pool
from windlass.worker.program import Program
from windlass.worker.run import ActiveRun, Why
from windlass.worker.slot import Slot
from windlass.worker.worker_log import log

_STRANDED_S = 1.0
_MICROSECOND = timedelta(microseconds=1)
_ON_PURPOSE = frozenset({"Retry", "Discard"})
"""Exceptions that control the job: their traceback is not logged."""


class HeldJobs:
    """Gets every start and end, decides how each run ends its job, and makes sure that it is recorded."""

    def __init__(
        self,
        store: Work,
        program: Program,
        pools: Sequence[Pool],
        *,
        clock: Clock,
        rng: Random,
        decide: Decide,
        lease_s: float,
    ) -> None:
        """Keep account of the jobs in `pools`, which may still be filled."""
        self._decide = decide
        self._decides_itself = decide is outcomes.decide
        self._pools = pools
        self._registry = program.registry
        self._profiles = program.profiles
        self._tracing = program.tracing
        self._clock = clock
        self._rng = rng
        self._lease_s = lease_s
        self._held: dict[int, Claimed | ActiveRun] = {}
        self._released: set[int] = set()
        """Jobs that are given back unstarted, until the store has recorded it."""
        self._unaccounted: dict[int, float] = {}
        """Since when a job has been held that neither waits, runs nor ends."""
        self.lease_times = LeaseTimes(clock.monotonic, lease_s)
        self._recordings: dict[asyncio.Task[None], Finish] = {}
        """Ends that wait until their breakers have recorded them."""
        self._loop_thread = threading.get_ident()
        self._hook_calls = HookCalls(program.hooks)
        self.breaker_watch = BreakerWatch(store)
        self.acker = Acker(store, rng=rng, is_busy=self._is_busy, accepted=self._accepted, has_caught_up=self._go_on)

    @property
    def is_clear(self) -> bool:
        """Whether no job is held and the store has recorded every end."""
        return not self._held and not self.acker.waiting

    @property
    def busy_slots(self) -> Iterator[Slot]:
        """The slots with a run going on."""
        return (slot for pool in self._pools for slot in pool.busy_slots)

    def leases(self) -> Sequence[Hold]:
        """List the leases; from any thread."""
        # A copy is one step of the interpreter; the loop goes on changing the original meanwhile.
        return [_hold(kept) for kept in self._held.copy().values()]

    def long_logs(self) -> list[RunLog]:
        """List what runs have logged that go on for longer than a heartbeat; from any thread."""
        before = self._clock.monotonic() - self._lease_s / BEATS_PER_LEASE
        return [
            RunLog(kept.job.id, kept.token, kept.logged.excerpt)
            for kept in self._held.copy().values()
            if isinstance(kept, ActiveRun) and kept.began <= before and kept.logged.excerpt is not None
        ]

    def taken(self, jobs: Sequence[Claimed], asked_at: float) -> None:
        """Hold jobs that have just been claimed under one lease, asked for at `asked_at` by the steady counter."""
        first = jobs[0]
        self._clock.note(first.claimed_at)
        self.lease_times.note(first.token, asked_at + (first.lease_expires_at - first.claimed_at).total_seconds())
        held = self._held
        for job in jobs:
            held[job.id] = job

    def started(self, active: ActiveRun) -> None:
        """Note a start; called on the thread where the handler is about to run."""
        self._held[active.job.id] = active
        if self._tracing is not None and (traced := self._tracing.begin(active.job)) is not None:
            active.trace(traced)
        if self._hook_calls.hears_anything:
            self._hook_calls.started(active)
        if log.logger.isEnabledFor(logging.DEBUG):
            log.debug("job started")

    def completed(self, active: ActiveRun) -> bool:
        """End the job of a run that returned nothing, unless there is something to decide, to stop or to keep."""
        logged = active.logged
        if active.why is not None or active.context is not None or active.is_reported or logged.tasks:
            return False
        if not self._needs_no_decision(active):
            return False
        active.is_reported, active.is_failure, logged.tasks = True, False, None
        self._complete(active, None)
        return True

    def _complete(self, active: ActiveRun, result: str | None) -> None:
        job = active.job
        finished_us = active.finished_us or self._clock.now_us()
        self.acker.add(Completed(job.id, job.token, job, active.started_us, finished_us, active.cpu_time_ms, result))
        if active.traced is not None:
            active.traced.completed(finished_us - active.started_us)
        if log.logger.isEnabledFor(logging.INFO):
            log.info("job completed", extra={"took": f"{(finished_us - active.started_us) / 1e6:.3f}s"})

    def ended(self, active: ActiveRun, outcome: Outcome | None) -> None:
        """Decide how a run ends its job; without an outcome the store has decided already."""
        job = active.job
        if (
            isinstance(outcome, Returned)
            and outcome.run_again_at is None
            and outcome.done_reason is None
            and self._needs_no_decision(active)
        ):
            self._complete(active, outcome.result)
            return
        now = active.finished_at or self._clock.now()
        run = _measured(active, now)
        if outcome is None:
            self._held.pop(job.id, None)
            self._hook_calls.forget(active)
            if active.why is Why.CANCELLED:
                self.acker.add_stop((job.id, job.token, run))
            level = logging.INFO if active.why is Why.CANCELLED else logging.WARNING
            why = "unknown" if active.why is None else active.why.value
            if active.traced is not None:
                active.traced.cut(_spent_us(run), why, is_wanted=active.why is Why.CANCELLED)
            log.log(level, "job run stopped", extra={"reason": why})
            return
        ending = self._decide(job, outcome, run, now=now, rng=self._rng, profiles=self._profiles)
        if active.traced is not None:
            active.traced.decided(_spent_us(run), ending)
        # Elsewhere the loop is blocked and the process about to end: there is no time left for the breaker.
        if self.breaker_watch.must_record(active) and threading.get_ident() == self._loop_thread:
            task = asyncio.create_task(self._record(active, ending))
            self._recordings[task] = ending
            task.add_done_callback(self._recordings.pop)
        else:
            self.acker.add(ending)
        _tell(ending)

    def _needs_no_decision(self, active: ActiveRun) -> bool:
        """Whether a run that came back well completes its job and leaves nothing to keep: most do, and are spared the rest."""
        return active.job.cadence is None and active.spec.breaker is None and active.is_bare and self._decides_itself

    async def _record(self, active: ActiveRun, ending: Finish) -> None:
        """Report to the breaker before the run is finished: the right to report as the probe ends with the lease."""
        is_open = False
        try:
            is_open = await self.breaker_watch.record(active)
        finally:
            self.acker.add(ending)
        if is_open and active.spec.breaker is not None:
            name = active.spec.breaker.name
            gated = {spec.name for spec in self._registry if spec.breaker is not None and spec.breaker.name == name}
            for pool in self._pools:
                pool.give_back(lambda job: job.task in gated)

    def release(self, job: Claimed) -> None:
        """Give back a job that has not started."""
        self._give_back(job, Released())

    def _give_back(self, job: Claimed, outcome: Released | Stopped) -> None:
        """End a job that has no run; if that cannot be done it is held no longer, and its lease runs out."""
        try:
            ending = self._decide(job, outcome, now=self._clock.now(), rng=self._rng)
        except Exception:
            log.exception("job %d could not be given back; its lease will run out", job.id, extra={"job_id": job.id})
            self._held.pop(job.id, None)
            return
        if not outcome.has_started:
            self._released.add(job.id)
        self.acker.add(ending)

    def last_endings(self, blocking: ActiveRun) -> list[Ending]:
        """List an end for every job held, for a process that is replaced because a run blocks its event loop.

        The run `blocking` has timed out, the others are given back, and what has ended is recorded. To be called from another
        thread, as the loop does not run. An exclusive run is left out: it may go on until the process has ended, and only then
        its lease is taken back.
        """
        for pool in self._pools:
            pool.collect()
        now = self._clock.now()
        endings: list[Ending] = [*self.acker.unsent]
        are_listed = {(ending.id, ending.token) for ending in endings}
        endings += [ending for ending in self._recordings.copy().values() if (ending.id, ending.token) not in are_listed]
        blocking.why = Why.TIMED_OUT
        for kept in self._held.copy().values():
            try:
                ending = self._last_ending(kept, blocking, now)
            except Exception:
                log.exception("the last end of a run could not be decided; its lease will run out")
                continue
            if ending is not None:
                endings.append(ending)
        return endings

    def _last_ending(self, kept: Claimed | ActiveRun, blocking: ActiveRun, now: datetime) -> Finish | None:
        if not isinstance(kept, ActiveRun):
            return None if kept.id in self._released else self._decide(kept, Released(), now=now, rng=self._rng)
        outcome: Outcome = Released(has_started=True)
        if kept is blocking:
            outcome = kept.cut_short() or outcome
        elif kept.is_reported or kept.spec.is_exclusive:
            return None
        return self._decide(kept.job, outcome, _measured(kept, now), now=now, rng=self._rng, profiles=self._profiles)

    @staticmethod
    def log_end(active: ActiveRun, endings: Sequence[Ending]) -> None:
        """Log how a run ends that is among the last ends of its process; from any thread."""
        ending = next((one for one in endings if (one.id, one.token) == (active.job.id, active.token)), None)
        if isinstance(ending, Finish):
            copy_context().run(_log_end_of, active.job, ending)

    async def settle(self) -> None:
        """Wait until the store has recorded everything."""
        while self._recordings:
            await asyncio.wait(self._recordings)
        await self.acker.drain()
        await self._hook_calls.settle()

    def _go_on(self) -> None:
        for pool in self._pools:
            pool.go_on()

    def _is_busy(self) -> bool:
        return any(pool.is_busy for pool in self._pools)

    def _accepted(self, endings: Sequence[Ending], accepted: Mapping[int, JobState]) -> None:
        held, hears_ends = self._held, self._hook_calls.hears_ends
        for ending in endings:
            job_id = ending.id
            kept = held.get(job_id)
            if kept is not None and kept.token == ending.token:
                del held[job_id]
                self._released.discard(job_id)
            state = accepted.get(job_id)
            if hears_ends:
                self._hook_calls.ended(ending, state)
            if state is None:
                job = kept.job if isinstance(kept, ActiveRun) else kept
                fields = {"job_id": ending.id} if job is None else CurrentJob.of(job).log_fields
                log.warning("the end of a run came too late: its lease had gone", extra=fields)

    def renewed(self, beat: Beat) -> None:
        """Note the leases that were renewed; on the heart's thread, as the loop may be blocked for longer than they last."""
        skipped = {lease.token for lease in beat.held if lease.is_skipped}
        for token in {lease.token for lease in beat.held} - skipped:
            self.lease_times.note(token, beat.at + self._lease_s)

    def answered(self, beat: Beat) -> None:
        """Act on what the heart learned."""
        # A run that has come back from its thread is in no slot, and must not count as one that is held without a run.
        for pool in self._pools:
            pool.collect()
        held = {lease.id: lease for lease in beat.held}
        running = {slot.active.job.id: slot for slot in self.busy_slots if slot.active is not None}
        for hold in beat.asked:
            mine = self._held.get(hold.id)
            if mine is None or mine.token != hold.token:
                # It ended while the heart was asking.
                continue
            why = _why(hold, held.get(hold.id))
            slot = running.get(hold.id)
            if slot is None or not isinstance(mine, ActiveRun):
                self._withdraw(hold, why)
            elif why is not None:
                slot.stop(mine, why)
        self.lease_times.keep({kept.token for kept in self._held.values()})
        self._release_stranded(running)

    def _release_stranded(self, running: Collection[int]) -> None:
        """Give back jobs that are held but neither wait, run nor end: renewed for ever, they would never run again."""
        now = self._clock.monotonic()
        waiting = {job.id for pool in self._pools for job in pool.waiting}
        lost = {job_id: kept for job_id, kept in self._held.items() if self._is_lost(job_id, kept, running, waiting)}
        self._unaccounted = {job_id: self._unaccounted.get(job_id, now) for job_id in lost}
        for job_id, since in self._unaccounted.items():
            # A job on its way from one place to the next is in neither for a moment.
            if now - since < _STRANDED_S:
                continue
            kept = lost[job_id]
            log.error("job %d is held without a run; it is given back", job_id, extra={"job_id": job_id})
            if isinstance(kept, ActiveRun):
                kept.is_reported = True
                self._give_back(kept.job, Released(has_started=True))
            else:
                self.release(kept)

    def _is_lost(self, job_id: int, kept: Claimed | ActiveRun, running: Collection[int], waiting: Collection[int]) -> bool:
        if isinstance(kept, ActiveRun):
            return not kept.is_reported and job_id not in running
        return job_id not in waiting and job_id not in self._released

    def _withdraw(self, hold: Hold, why: Why | None) -> None:
        """Drop a job that waits for a slot and is wanted no more; one whose end is on its way is left alone."""
        job = None if why is None else next(filter(None, (pool.withdraw(hold.id) for pool in self._pools)), None)
        if job is None:
            return
        if why is Why.STOPPED:
            self._give_back(job, Stopped(has_started=False))
            return
        del self._held[job.id]
        if why is Why.CANCELLED:
            self.acker.add_stop((job.id, job.token, NO_RUN))


def _measured(active: ActiveRun, now: datetime) -> Run:
    try:
        return active.measured(now)
    except Exception:
        # What a handler leaves in its context may raise when it is looked at; its job must end all the same.
        log.exception("what was measured of a run could not be read")
        return Run(active.started_at, now)


def _spent_us(run: Run) -> int:
    return 0 if run.started_at is None or run.finished_at is None else (run.finished_at - run.started_at) // _MICROSECOND


def _hold(kept: Claimed | ActiveRun) -> Hold:
    return Hold(kept.job.id, kept.job.token, kept.started_at) if isinstance(kept, ActiveRun) else Hold(kept.id, kept.token, None)


def _why(hold: Hold, lease: Held | None) -> Why | None:
    """Return why a run must end, if it must."""
    if lease is None or lease.token != hold.token:
        return Why.LOST
    if lease.should_stop:
        return Why.CANCELLED if lease.is_cancelled else Why.STOPPED
    return None


def _log_end_of(job: Claimed, ending: Finish) -> None:
    current_run.set(RunningJob(job))
    _tell(ending)


def _tell(ending: Finish) -> None:
    """Log how a run ended."""
    failure = ending.failure
    if failure is None:
        if log.logger.isEnabledFor(logging.INFO):
            run = ending.run
            fields: dict[str, object] = {}
            if run.started_at is not None and run.finished_at is not None:
                fields["took"] = f"{(run.finished_at - run.started_at).total_seconds():.3f}s"
            if run.items_crawled is not None:
                fields["items_crawled"] = run.items_crawled
            log.info("job completed" if ending.state is JobState.COMPLETED else "job run ended", extra=fields)
        return
    retry_in = None if ending.delay is None else f"{ending.delay.total_seconds():.3g}s"
    fields = {"error": failure.message, "state": ending.state.value, "retry_in": retry_in}
    if failure.kind in _ON_PURPOSE:
        log.warning("job failed", extra=fields)
    else:
        log.error("job failed", extra=fields | {STACK_TRACE: failure.trace})
