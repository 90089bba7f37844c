"""One place of a pool, which runs one job after another."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from random import Random
from typing import Any

from windlass.core.current import CurrentJob, current_job
from windlass.core.job import Claimed
from windlass.core.outcome import Failure, Outcome, Raised, Returned
from windlass.core.payload import sanitise_result
from windlass.core.task import Isolation, Registry, TaskSpec
from windlass.ports import Clock, Store
from windlass.worker.context import JobContext
from windlass.worker.flight import Flight, Why
from windlass.worker.link import StoreLink
from windlass.worker.logs import current_excerpt
from windlass.worker.options import WorkerOptions
from windlass.worker.verdict import outcome_of

log = logging.getLogger("windlass.worker")

MAX_RESULT = 262_144


@dataclass(frozen=True, slots=True)
class Kit:
    """What every slot of a worker shares."""

    registry: Registry
    store: Store
    clock: Clock
    rng: Random
    options: WorkerOptions
    started: Callable[[Flight], None]
    ended: Callable[[Flight, Outcome | None], None]
    """Hears of every run exactly once; without an outcome there is nothing left to decide."""
    state: Any = None
    target: str | None = None
    """Where a child process finds the application: `module:attribute`."""


class Slot:
    """Runs one job at a time, in the way its task asks for."""

    def __init__(self, kit: Kit) -> None:
        """Share `kit` with the other slots."""
        self._kit = kit
        self._loop = asyncio.get_running_loop()
        self._task: asyncio.Task[Any] | None = None
        self.flight: Flight | None = None
        self.is_lost = False
        """Whether a handler that would not stop still sits in it; another slot has taken its place."""

    async def run(self, job: Claimed, spec: TaskSpec) -> None:
        """Run a job and tell what became of it, whatever its handler does."""
        kit = self._kit
        flight = self._take_off(job, spec)
        try:
            outcome = self._landed(flight, await self._call(flight))
        except GeneratorExit:
            raise
        except BaseException as error:  # noqa: BLE001 - a handler may raise anything, and its job must end
            outcome = self._crashed(flight, error)
        finally:
            self.flight = None
        if not flight.is_reported:
            flight.is_reported = True
            kit.ended(flight, outcome)

    def _take_off(self, job: Claimed, spec: TaskSpec) -> Flight:
        kit = self._kit
        timeout = spec.timeout if job.timeout_us is None else timedelta(microseconds=job.timeout_us)
        flight = Flight(
            job,
            spec,
            StoreLink(job, kit.store, self._loop),
            started_at=kit.clock.now(),
            timeout=kit.options.timeout_of(job.lane) if timeout is None else timeout,
        )
        now = kit.clock.monotonic()
        flight.deadline = now + flight.timeout.total_seconds()
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
            flight.context = JobContext(flight.job, flight.link, self._kit.state)
            return await spec.function(flight.context, **arguments)
        return await spec.function(**arguments)

    def _landed(self, flight: Flight, value: Any) -> Outcome | None:
        """Judge a handler that came back; too late is too late, but a result beats a wish to stop."""
        if flight.why is not None:
            self._clear_cancel()
            if flight.why not in {Why.STOPPED, Why.SHUTDOWN}:
                return flight.cut_short()
        again = None if flight.context is None else flight.context.again
        run_again_at = None
        if again is not None:
            run_again_at = again.at if again.after is None else self._kit.clock.now() + again.after
        return Returned(None if value is None else sanitise_result(value, MAX_RESULT), run_again_at)

    def _crashed(self, flight: Flight, error: BaseException) -> Outcome | None:
        if flight.why is not None:
            self._clear_cancel()
            return flight.cut_short()
        if isinstance(error, asyncio.CancelledError):
            if self._task is not None and self._task.cancelling():
                # Not our doing: the worker itself is being torn down.
                raise error
            return Raised(Failure("the handler was cancelled from within", "CancelledError"))
        return outcome_of(error, flight.spec, flight.job, self._kit.rng)

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

    def give_up(self) -> None:
        """Report a run whose handler would not stop, and leave the handler behind."""
        flight = self.flight
        if flight is None or flight.is_reported:
            return
        flight.is_reported = True
        self.is_lost = True
        self._kit.ended(flight, flight.cut_short())
