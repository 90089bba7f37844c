"""One place of a pool, which runs one job after another."""

from __future__ import annotations

import asyncio
import inspect
import logging
import time
from collections.abc import Callable, Sequence
from contextvars import copy_context
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from random import Random
from typing import Any

from windlass.core.current import CurrentJob, current_job
from windlass.core.job import Claimed
from windlass.core.outcome import MAX_RESULT, Failure, Outcome, Raised, Returned
from windlass.core.payload import sanitise_result
from windlass.core.task import Isolation, TaskSpec
from windlass.errors import ConfigError
from windlass.ports import Clock, Work
from windlass.worker.context import JobContext
from windlass.worker.flight import Flight, Why
from windlass.worker.link import StoreLink
from windlass.worker.logs import current_excerpt
from windlass.worker.options import WorkerOptions
from windlass.worker.processes import ChildRunner
from windlass.worker.program import Program
from windlass.worker.threads import Abandoned, SlotThread, ThreadCount
from windlass.worker.verdict import Judge, Verdict
from windlass.worker.volley import Landed, Volley
from windlass.worker.wire import ChildEnd, ChildRaised, ChildReturned

log = logging.getLogger("windlass.worker")

_RESULT_COUNTS = frozenset({Why.STOPPED, Why.SHUTDOWN})


@dataclass(frozen=True, slots=True, kw_only=True)
class Kit:
    """What every slot of a worker shares."""

    program: Program
    store: Work
    clock: Clock
    rng: Random
    options: WorkerOptions
    started: Callable[[Flight], None]
    ended: Callable[[Flight, Outcome | None], None]
    """Hears of every run exactly once; without an outcome there is nothing left to decide."""
    lost_threads: ThreadCount = field(default_factory=ThreadCount)


class Slot:
    """Runs one job at a time, in the way its task asks for."""

    def __init__(self, kit: Kit) -> None:
        """Share `kit` with the other slots."""
        self._kit = kit
        self._loop = asyncio.get_running_loop()
        self._task: asyncio.Task[Any] | None = None
        self._thread: SlotThread | None = None
        self._child: ChildRunner | None = None
        self._flight: Flight | None = None
        self._volley: Volley | None = None
        self.is_lost = False
        """Whether a handler that would not stop still sits in it; another slot has taken its place."""

    @property
    def flight(self) -> Flight | None:
        """The run that goes on now."""
        return self._flight if self._volley is None else self._volley.flight

    async def run(self, job: Claimed, spec: TaskSpec) -> None:
        """Run a coroutine, or a function in a child process, and tell what became of the job, whatever its handler does."""
        if self._task is None:
            self._task = asyncio.current_task()
        self._volley = None
        self._flight = flight = self._take_off(job, spec)
        try:
            if spec.isolation is Isolation.PROCESS:
                outcome = self._child_ended(flight, await self._run_child(flight))
            else:
                outcome = self._returned(flight, await self._call_of(flight)())
        except GeneratorExit:
            raise
        except BaseException as error:  # noqa: BLE001 - a handler may raise anything, and its job must end
            outcome = self._raised(flight, error)
        finally:
            self._flight = None
        self._report(flight, outcome)

    async def run_in_thread(self, jobs: Sequence[Claimed], spec: TaskSpec) -> None:
        """Run functions one after another in the slot's thread; `collect` and `recall` tell how far it came."""
        if self._thread is None:
            self._thread = SlotThread(lost=self._kit.lost_threads)
        self._volley = volley = Volley(jobs)
        take_off = partial(self._take_off, spec=spec)
        try:
            await self._thread.run(partial(volley.fly, take_off, self._call_in_thread))
        except Abandoned:
            # The run was reported by whoever gave it up.
            volley.flight = None

    def collect(self) -> list[float]:
        """Report the runs that came back from the thread; returns how long each took."""
        landed = [] if self._volley is None else self._volley.collect()
        for run in landed:
            self._judge_landed(run)
        return [run.seconds for run in landed]

    def recall(self) -> list[Claimed]:
        """Take back the jobs that were given to the thread and have not started."""
        return [] if self._volley is None else self._volley.recall()

    def _take_off(self, job: Claimed, spec: TaskSpec) -> Flight:
        """Begin a run, on the thread where its handler will run."""
        kit = self._kit
        timeout = spec.timeout if job.timeout_us is None else timedelta(microseconds=job.timeout_us)
        if timeout is None:
            timeout = kit.options.timeout_of(job.lane)
        flight = Flight(job, spec, started_at=kit.clock.now(), now=kit.clock.monotonic(), timeout=timeout)
        current_job.set(_current(job))
        current_excerpt.set(flight.excerpt)
        kit.started(flight)
        return flight

    def _call_of(self, flight: Flight) -> Callable[[], Any]:
        spec = flight.spec
        arguments = spec.arguments(flight.job.payload)
        if not spec.takes_context:
            return partial(spec.function, **arguments)
        flight.link = StoreLink(flight.job, self._kit.store, self._loop)
        flight.context = JobContext(flight.job, flight.link, self._kit.program.state)
        return partial(spec.function, flight.context, **arguments)

    def _call_in_thread(self, flight: Flight) -> Any:
        began = time.thread_time()
        try:
            call = self._call_of(flight)
            if inspect.iscoroutinefunction(flight.spec.function):
                call = partial(_run_alone, call)
            # What a handler sets in its context is gone when the next one runs.
            return copy_context().run(call)
        finally:
            flight.cpu_time_ms = round((time.thread_time() - began) * 1000)
            flight.finished_at = self._kit.clock.now()

    def _judge_landed(self, landed: Landed) -> None:
        flight = landed.flight
        current_job.set(_current(flight.job))
        outcome = self._returned(flight, landed.value) if landed.error is None else self._raised(flight, landed.error)
        self._report(flight, outcome)

    def _report(self, flight: Flight, outcome: Outcome | None) -> None:
        if not flight.is_reported:
            flight.is_reported = True
            self._kit.ended(flight, outcome)

    async def _run_child(self, flight: Flight) -> ChildEnd:
        if self._child is None:
            if self._kit.program.target is None:
                raise ConfigError(
                    f"task {flight.job.task!r} runs in a child process, which must find the application by name: "
                    "start the worker as `windlass worker module:app`"
                )
            self._child = ChildRunner(self._kit.program.target)
        link = StoreLink(flight.job, self._kit.store, self._loop)
        return await self._child.run(flight.job, handle=link.call, memory_limit_mb=flight.spec.memory_limit_mb)

    def _returned(self, flight: Flight, value: Any) -> Outcome | None:
        """Judge a handler that came back; too late is too late, but a result beats a wish to stop."""
        if flight.why is not None:
            self._clear_cancel()
            if flight.why not in _RESULT_COUNTS:
                return flight.cut_short()
        return self._completed(flight, None if value is None else sanitise_result(value, MAX_RESULT))

    def _completed(self, flight: Flight, result: str | None) -> Outcome:
        flight.is_failure = False
        again = flight.again
        if again is None:
            return Returned(result)
        return Returned(result, again.at if again.after is None else self._kit.clock.now() + again.after)

    def _child_ended(self, flight: Flight, end: ChildEnd) -> Outcome | None:
        flight.end = end
        if isinstance(end.outcome, ChildReturned):
            if flight.why is not None and flight.why not in _RESULT_COUNTS:
                return flight.cut_short()
            return self._completed(flight, end.outcome.result)
        if flight.why is not None:
            return flight.cut_short()
        judge = self._judge(flight)
        is_raised = isinstance(end.outcome, ChildRaised)
        return self._judged(flight, judge.of_child(end.outcome) if is_raised else judge.of_crash(end.outcome))  # type: ignore[arg-type]

    def _raised(self, flight: Flight, error: BaseException) -> Outcome | None:
        if flight.why is not None:
            self._clear_cancel()
            return flight.cut_short()
        if isinstance(error, asyncio.CancelledError):
            if self._task is not None and self._task.cancelling():
                # Not our doing: the worker itself is being torn down.
                raise error
            return Raised(Failure("the handler was cancelled from within", "CancelledError"))
        return self._judged(flight, self._judge(flight).of_error(error))

    def _judge(self, flight: Flight) -> Judge:
        return Judge(flight.spec, flight.job, self._kit.rng, self._kit.clock.now())

    @staticmethod
    def _judged(flight: Flight, verdict: Verdict) -> Outcome:
        flight.is_failure = True if verdict.is_failure else None
        return verdict.outcome

    def _clear_cancel(self) -> None:
        while self._task is not None and self._task.cancelling():
            self._task.uncancel()

    def stop(self, flight: Flight, why: Why) -> None:
        """Tell the handler to end, if this is still its run; the first reason stands."""
        if flight is not self.flight or flight.why is not None:
            return
        flight.tell(why, self._kit.clock.monotonic())
        if flight.spec.isolation is Isolation.ASYNC and self._task is not None:
            self._task.cancel()
        elif flight.spec.isolation is Isolation.PROCESS and self._child is not None:
            self._child.stop()

    def give_up(self) -> None:
        """Leave a handler behind that would not stop: abandon its thread, kill its process, replace its slot."""
        flight = self.flight
        if flight is None or flight.is_reported:
            return
        if flight.spec.isolation is Isolation.PROCESS and self._child is not None:
            self._child.kill_now(self._child.number)
            return
        if flight.spec.isolation is Isolation.THREAD and self._thread is not None:
            self._thread.abandon()
        else:
            self.is_lost = True
        self._report(flight, flight.cut_short())

    async def close(self) -> None:
        """Let go of the thread and the child."""
        if self._thread is not None:
            self._thread.close()
        if self._child is not None:
            await self._child.close()


def _current(job: Claimed) -> CurrentJob:
    return CurrentJob(job.id, job.task, job.attempt, job.correlation_id, job.token)


def _run_alone(call: Callable[[], Any]) -> Any:
    """Run a coroutine in a thread that has no event loop."""
    return asyncio.run(call())
