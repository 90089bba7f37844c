"""One place of a pool, which runs one job after another."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from random import Random
from typing import Any

from windlass.core.current import CurrentJob, current_job
from windlass.core.job import Claimed
from windlass.core.outcome import Failure, Outcome, Raised, Returned
from windlass.core.payload import sanitise_result
from windlass.core.task import Isolation, TaskSpec
from windlass.errors import ConfigError
from windlass.ports import Clock, Store
from windlass.worker.context import JobContext
from windlass.worker.flight import Flight, Why
from windlass.worker.link import StoreLink
from windlass.worker.logs import current_excerpt
from windlass.worker.options import WorkerOptions
from windlass.worker.processes import ChildRunner
from windlass.worker.program import Program
from windlass.worker.threads import SlotThread, ThreadCount
from windlass.worker.verdict import Judge, Verdict
from windlass.worker.wire import ChildEnd, ChildRaised, ChildReturned

log = logging.getLogger("windlass.worker")

MAX_RESULT = 262_144
_RESULT_COUNTS = frozenset({Why.STOPPED, Why.SHUTDOWN})


@dataclass(frozen=True, slots=True, kw_only=True)
class Kit:
    """What every slot of a worker shares."""

    program: Program
    store: Store
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
        self.flight: Flight | None = None
        self.is_lost = False
        """Whether a handler that would not stop still sits in it; another slot has taken its place."""

    async def run(self, job: Claimed, spec: TaskSpec) -> None:
        """Run a job and tell what became of it, whatever its handler does."""
        flight = self._take_off(job, spec)
        try:
            if spec.isolation is Isolation.PROCESS:
                outcome = self._child_ended(flight, await self._run_child(flight))
            else:
                outcome = self._returned(flight, await self._call(flight))
        except GeneratorExit:
            raise
        except BaseException as error:  # noqa: BLE001 - a handler may raise anything, and its job must end
            outcome = self._raised(flight, error)
        finally:
            self.flight = None
        if not flight.is_reported:
            flight.is_reported = True
            self._kit.ended(flight, outcome)

    def _take_off(self, job: Claimed, spec: TaskSpec) -> Flight:
        kit = self._kit
        timeout = spec.timeout if job.timeout_us is None else timedelta(microseconds=job.timeout_us)
        if timeout is None:
            timeout = kit.options.timeout_of(job.lane)
        flight = Flight(job, spec, StoreLink(job, kit.store, self._loop), started_at=kit.clock.now(), timeout=timeout)
        flight.deadline = kit.clock.monotonic() + timeout.total_seconds()
        self._task = asyncio.current_task()
        self.flight = flight
        current_job.set(CurrentJob(job.id, job.task, job.attempt, job.correlation_id))
        current_excerpt.set(flight.excerpt)
        kit.started(flight)
        return flight

    async def _call(self, flight: Flight) -> Any:
        spec = flight.spec
        arguments = spec.arguments(flight.job.payload)
        if spec.takes_context:
            flight.context = JobContext(flight.job, flight.link, self._kit.program.state)
            call = partial(spec.function, flight.context, **arguments)
        else:
            call = partial(spec.function, **arguments)
        if spec.isolation is Isolation.THREAD:
            return await self._run_in_thread(flight, call)
        return await call()

    async def _run_in_thread(self, flight: Flight, call: Callable[[], Any]) -> Any:
        if self._thread is None:
            self._thread = SlotThread(lost=self._kit.lost_threads)
        if inspect.iscoroutinefunction(flight.spec.function):
            call = partial(_run_alone, call)
        try:
            return await self._thread.run(call)
        finally:
            flight.cpu_time_ms = round(self._thread.cpu_time_s * 1000)

    async def _run_child(self, flight: Flight) -> ChildEnd:
        if self._child is None:
            if self._kit.program.target is None:
                raise ConfigError(
                    f"task {flight.job.task!r} runs in a child process, which must find the application by name: "
                    "start the worker as `windlass worker module:app`"
                )
            self._child = ChildRunner(self._kit.program.target)
        return await self._child.run(flight.job, handle=flight.link.call, memory_limit_mb=flight.spec.memory_limit_mb)

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

    def stop(self, why: Why) -> None:
        """Tell the handler to end; the first reason stands."""
        flight = self.flight
        if flight is None or flight.why is not None:
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
        if flight.spec.isolation is Isolation.THREAD and self._thread is not None:
            self._thread.abandon()
        elif flight.spec.isolation is Isolation.PROCESS and self._child is not None:
            self._child.kill_now(self._child.number)
        else:
            flight.is_reported = True
            self.is_lost = True
            self._kit.ended(flight, flight.cut_short())

    async def close(self) -> None:
        """Let go of the thread and the child."""
        if self._thread is not None:
            self._thread.close()
        if self._child is not None:
            await self._child.close()


def _run_alone(call: Callable[[], Any]) -> Any:
    """Run a coroutine in a thread that has no event loop."""
    return asyncio.run(call())
