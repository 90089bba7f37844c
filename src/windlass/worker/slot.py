"""One place of a pool, which runs one job after another."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Callable, Coroutine, Sequence
from contextvars import Context
from dataclasses import field
from datetime import timedelta
from functools import partial
from random import Random
from typing import Any

from windlass.core.current import current_run
from windlass.core.job import Claimed
from windlass.core.outcome import MAX_RESULT, Failure, Outcome, Raised, Released, Returned
from windlass.core.payload import sanitise_result
from windlass.core.record import record
from windlass.core.task import Isolation, TaskSpec
from windlass.errors import ConfigError
from windlass.ports import Clock, Work
from windlass.worker.context import JobContext
from windlass.worker.eager_task import eager_task
from windlass.worker.lease_times import Late, LeaseTimes
from windlass.worker.link import StoreLink
from windlass.worker.processes import ChildRunner, NoProcess
from windlass.worker.program import Program, WorkerOptions
from windlass.worker.run import ActiveRun, Why
from windlass.worker.run_tasks import end_tasks, has_started
from windlass.worker.thread_batch import ThreadBatch
from windlass.worker.threads import Abandoned, NoThread, SlotThread, ThreadCount
from windlass.worker.verdict import Judge, Verdict
from windlass.worker.wire import ChildEnd, ChildRaised, ChildReturned
from windlass.worker.worker_log import log

_NOTHING = Returned()
_RESULT_COUNTS = frozenset({Why.STOPPED, Why.SHUTDOWN, Why.EXPIRED})


@record(kw_only=True)
class SharedParts:
    """What every slot of a worker shares."""

    program: Program
    store: Work
    clock: Clock
    rng: Random
    options: WorkerOptions
    context: Context
    """What a run finds in its context variables: a copy of this for each run."""
    lease_times: LeaseTimes
    started: Callable[[ActiveRun], None]
    ended: Callable[[ActiveRun, Outcome | None], None]
    """Called exactly once for every run, unless it raises; without an outcome the store has decided already."""
    completed: Callable[[ActiveRun], bool]
    """Called in its place for a run that returned nothing; False where there is something to decide, which `ended` does."""
    lost_threads: ThreadCount = field(default_factory=ThreadCount)


class Slot:
    """Runs one job at a time, in the way its task asks for, each in an asyncio task and a context of its own."""

    def __init__(self, shared: SharedParts, *, freed: Callable[[Slot, float | None], None]) -> None:
        """Use `shared` as all other slots do; `freed` is called when the slot is free again, with how long its one run took."""
        self._shared = shared
        self._freed = freed
        self._loop = asyncio.get_running_loop()
        self._task: asyncio.Task[Any] | None = None
        self._thread: SlotThread | None = None
        self._child: ChildRunner | None = None
        self._active: ActiveRun | None = None
        self._batch: ThreadBatch | None = None
        self.is_lost = False
        """Whether a handler that would not stop still sits in it; another slot has taken its place."""
        self.shortage: str | None = None
        """Why the system had no thread or process for its last job, which has not started."""

    @property
    def active(self) -> ActiveRun | None:
        """The run that goes on now."""
        return self._active if self._batch is None else self._batch.active

    @property
    def is_free(self) -> bool:
        """Whether nothing runs here."""
        return self._task is None

    def is_of(self, task: asyncio.Task[Any]) -> bool:
        """Whether an asyncio task is the run's own, or one that its handler has started."""
        active = self.active
        started = None if active is None else active.logged.tasks
        return task is self._task or (started is not None and has_started(started, task))

    @property
    def waiting(self) -> list[Claimed]:
        """The jobs that were given to the thread and have not started."""
        return [] if self._batch is None else self._batch.waiting

    def start(self, job: Claimed, spec: TaskSpec) -> None:
        """Start a coroutine, or a function in a child process."""
        self._batch = self.shortage = None
        self._active = active = self._begin(job, spec)
        # It keeps itself in `_task` for as long as it goes on, and may have ended by now.
        _ = self._make_task(self._run(active))

    def start_in_thread(self, jobs: Sequence[Claimed], spec: TaskSpec) -> None:
        """Start functions one after another in the slot's thread; `collect` and `recall` return its progress."""
        self.shortage = None
        self._batch = batch = ThreadBatch(jobs)
        self._task = task = self._make_task(self._run_in_thread(batch, spec))
        task.add_done_callback(self._thread_freed, context=self._shared.context.copy())

    def _make_task(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        return eager_task(work, self._loop, self._shared.context.copy())

    async def _run(self, active: ActiveRun) -> None:
        # Before anything else: the first step, which is taken at once, may block the event loop.
        self._task = asyncio.current_task(self._loop)
        value, error = None, None
        shared, spec = self._shared, active.spec
        try:
            current_run.set(active.logged)
            shared.started(active)
            if spec.isolation is Isolation.PROCESS:
                value = await self._run_child(active)
            else:
                arguments = spec.arguments(active.job.payload)
                context = self._context_of(active) if spec.takes_context else ()
                self._look_again(active)
                value = await spec.function(*context, **arguments)
        except BaseException as raised:  # noqa: BLE001 - a handler may raise anything, and its job must end
            error = raised
        # Reported and followed by the next run within the task: a callback would need a turn of the event loop.
        self._active = self._task = None
        try:
            if error is not None or value is not None or not shared.completed(active):
                self._settle(active, self._outcome, value, error)
        finally:
            self._freed(self, shared.clock.monotonic() - active.began)

    def _outcome(self, active: ActiveRun, value: Any, error: BaseException | None) -> Outcome | None:
        if error is not None:
            return self._raised(active, error)
        if active.spec.isolation is Isolation.PROCESS:
            return self._child_ended(active, value)
        return self._returned(active, value)

    async def _run_in_thread(self, batch: ThreadBatch, spec: TaskSpec) -> None:
        if self._thread is None:
            self._thread = SlotThread(lost=self._shared.lost_threads)
        work = partial(batch.run, self._shared.lease_times.may_start, partial(self._begin, spec=spec), self._call_in_thread)
        try:
            await self._thread.run(work)
        except Abandoned:
            # The run was reported when it was abandoned.
            batch.active = None

    def _thread_freed(self, task: asyncio.Task[None]) -> None:
        self._task = None
        error = asyncio.CancelledError() if task.cancelled() else task.exception()
        try:
            if isinstance(error, NoThread):
                self.shortage = str(error)
            elif error is not None:
                log.error("a slot's thread ended early: %r", error)
                active = None if self._batch is None else self._batch.active
                if active is not None:
                    self._settle_from_outside(active, self._raised, error)
        finally:
            self._freed(self, None)

    def collect(self) -> list[float]:
        """Report the runs that came back from the thread; returns how long each took."""
        ended = [] if self._batch is None else self._batch.collect()
        for run in ended:
            self._shared.context.copy().run(self._settle_from_outside, run.active, self._outcome, run.value, run.error)
        return [run.seconds for run in ended]

    def recall(self) -> list[Claimed]:
        """Take back the jobs that were given to the thread and have not started."""
        return [] if self._batch is None else self._batch.recall()

    def _begin(self, job: Claimed, spec: TaskSpec) -> ActiveRun:
        """Describe a run that starts now; for functions, on the thread where they will run."""
        shared = self._shared
        timeout = spec.timeout if job.timeout_us is None else timedelta(microseconds=job.timeout_us)
        if timeout is None:
            timeout = shared.options.timeout_of(job.lane)
        return ActiveRun(job, spec, started_us=shared.clock.now_us(), now=shared.clock.monotonic(), timeout=timeout)

    def _enter(self, active: ActiveRun) -> None:
        """Begin a run in its own context."""
        current_run.set(active.logged)
        self._shared.started(active)

    def _look_again(self, active: ActiveRun) -> None:
        """Start nothing under a lease that ran out while the run was made ready: a process can be frozen at any line."""
        if not self._shared.lease_times.may_start(active.token):
            active.ask_to_end(Why.LATE, self._shared.clock.monotonic())
            raise Late

    def _context_of(self, active: ActiveRun) -> tuple[JobContext]:
        active.link = StoreLink(active.job, self._shared.store, self._loop)
        active.context = JobContext(active.job, active.link, self._shared.program.state)
        return (active.context,)

    def _call_in_thread(self, active: ActiveRun) -> Any:
        began = time.thread_time()
        try:
            return self._shared.context.copy().run(self._call_inside, active)
        finally:
            active.cpu_time_ms = round((time.thread_time() - began) * 1000)
            active.finished_us = self._shared.clock.now_us()

    def _call_inside(self, active: ActiveRun) -> Any:
        self._enter(active)
        spec = active.spec
        arguments = spec.arguments(active.job.payload)
        context = self._context_of(active) if spec.takes_context else ()
        self._look_again(active)
        if inspect.iscoroutinefunction(spec.function):
            return _run_alone(partial(spec.function, *context, **arguments))
        return spec.function(*context, **arguments)

    def _settle_from_outside(self, active: ActiveRun, judge: Callable[..., Outcome | None], *how: Any) -> None:
        """Report the end of a run from another context than its own."""
        current_run.set(active.logged)
        self._settle(active, judge, *how)

    def _settle(self, active: ActiveRun, judge: Callable[..., Outcome | None], *how: Any) -> None:
        """Report the end of a run once; raises nothing, as a job whose end is not reported would be held for ever."""
        is_news, active.is_reported = not active.is_reported, True
        # What is started from here on is not the handler's.
        tasks, active.logged.tasks = active.logged.tasks, None
        try:
            if tasks:
                end_tasks(tasks)
            if is_news:
                self._shared.ended(active, judge(active, *how))
        except BaseException as error:  # a value's own methods may raise anything
            log.exception("the end of a run could not be judged")
            if is_news:
                self._fail(active, type(error).__name__)

    def _fail(self, active: ActiveRun, kind: str) -> None:
        """Report a run whose end could not be handled as failed by the error that was in the way."""
        try:
            self._shared.ended(active, Raised(Failure(f"the end of its run could not be judged: {kind}", kind)))
        except BaseException:
            log.exception("the end of a run could not be reported")
            # It is held without a run from now on, and given back as such.
            active.is_reported = False

    def clear(self) -> None:
        """Drop a run that could not be started, so that its job is given back and the slot can take another."""
        self._active = self._batch = None

    async def _run_child(self, active: ActiveRun) -> ChildEnd:
        if self._child is None:
            if self._shared.program.target is None:
                raise ConfigError(
                    f"task {active.job.task!r} runs in a child process, which must find the application by name: "
                    "start the worker as `windlass worker module:app`"
                )
            self._child = ChildRunner(self._shared.program.target)
        link = StoreLink(active.job, self._shared.store, self._loop)
        self._look_again(active)
        try:
            return await self._child.run(
                active.job,
                handle=link.call,
                memory_limit_mb=active.spec.memory_limit_mb,
                left_to_start=partial(self._shared.lease_times.left_to_start, active.token),
            )
        except Late:
            # A child can take longer to start than a lease lasts.
            if active.why is None:
                active.ask_to_end(Why.LATE, self._shared.clock.monotonic())
            raise

    def _returned(self, active: ActiveRun, value: Any) -> Outcome | None:
        """Return the outcome of a handler that came back: a late result is dropped, one despite a stop request counts."""
        if active.why is not None and active.why not in _RESULT_COUNTS:
            return active.cut_short()
        return self._completed(active, None if value is None else sanitise_result(value, MAX_RESULT))

    def _completed(self, active: ActiveRun, result: str | None) -> Outcome:
        active.is_failure = False
        again = active.again
        if again is None:
            return _NOTHING if result is None else Returned(result)
        return Returned(result, again.at if again.after is None else self._shared.clock.now() + again.after)

    def _child_ended(self, active: ActiveRun, end: ChildEnd) -> Outcome | None:
        active.end = end
        if isinstance(end.outcome, ChildReturned):
            if active.why is not None and active.why not in _RESULT_COUNTS:
                return active.cut_short()
            return self._completed(active, end.outcome.result)
        if active.why is not None:
            return active.cut_short()
        judge = self._judge(active)
        is_raised = isinstance(end.outcome, ChildRaised)
        return self._judged(active, judge.of_child(end.outcome) if is_raised else judge.of_crash(end.outcome))  # type: ignore[arg-type]

    def _raised(self, active: ActiveRun, error: BaseException) -> Outcome | None:
        if active.why is not None:
            return active.cut_short()
        if isinstance(error, NoProcess):
            self.shortage = str(error)
            return Released()
        active.error = error
        if isinstance(error, asyncio.CancelledError):
            return Raised(Failure("the handler was cancelled from within", "CancelledError"))
        return self._judged(active, self._judge(active).of_error(error))

    def _judge(self, active: ActiveRun) -> Judge:
        return Judge(active.spec, active.job, self._shared.rng, self._shared.clock.now())

    @staticmethod
    def _judged(active: ActiveRun, verdict: Verdict) -> Outcome:
        active.is_failure = True if verdict.is_failure else None
        return verdict.outcome

    def stop(self, active: ActiveRun, why: Why) -> None:
        """Stop the handler, if this is still its run; the first reason stands."""
        if active is not self.active or active.why is not None:
            return
        active.ask_to_end(why, self._shared.clock.monotonic())
        if active.spec.isolation is Isolation.ASYNC and self._task is not None:
            self._task.cancel()
        elif active.spec.isolation is Isolation.PROCESS and self._child is not None:
            self._child.stop()

    @property
    def has_unreported(self) -> bool:
        """Whether a run goes on here that has not been reported."""
        return (active := self.active) is not None and not active.is_reported

    def give_up(self, *, is_last: bool = False) -> None:
        """Leave a handler behind that would not stop: abandon its thread, kill its process, replace its slot.

        The end of a killed process is waited for, unless this is the last chance to report its run. An exclusive run is never
        reported while its handler may go on: it keeps its slot and its lease until it has ended, or its process has.
        """
        active = self.active
        if active is None or active.is_reported:
            return
        if active.spec.isolation is Isolation.PROCESS and self._child is not None:
            self._child.kill_now(self._child.number)
            if not is_last:
                return
        if active.spec.is_exclusive:
            return
        if active.spec.isolation is Isolation.THREAD and self._thread is not None:
            self._thread.abandon()
        else:
            self.is_lost = True
        self._shared.context.copy().run(self._settle_from_outside, active, ActiveRun.cut_short)

    async def close(self) -> None:
        """End the thread and the child."""
        if self._thread is not None:
            self._thread.close()
        if self._child is not None:
            await self._child.close()


def _run_alone(call: Callable[[], Any]) -> Any:
    """Run a coroutine in a thread that has no event loop."""
    return asyncio.run(call())
