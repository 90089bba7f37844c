"""The verbs of an application, written once for asyncio and for blocking code."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, TypeVar, Unpack

from windlass.client.declared import DeclaredTasks
from windlass.client.job_ref import JobRef, number_of
from windlass.client.options import JOB_OPTIONS, EditOptions, UsingOptions, check_names, edit_of
from windlass.client.stores_by_loop import OpenedStore
from windlass.client.transaction import driver_connection
from windlass.core.blocking import twin_of
from windlass.core.durations import parse_duration
from windlass.core.hooks import EnqueueEvent, Happening, Hooks
from windlass.core.job import CLOSED, DeadLetter, Enqueued, Execution, Job, JobState, LikeJobs, NewJob, Stored
from windlass.core.job_verbs import JOB_VERBS
from windlass.core.known_task import DeclaredOptions
from windlass.core.pool import PULL_LANE
from windlass.errors import InvalidInput, JobCancelled, JobFailed, UnknownTask, WaitTimeout

if TYPE_CHECKING:
    from windlass.core.explanation import Explanation
    from windlass.core.transitions import Moved
    from windlass.store import Store
    from windlass.store.calls.call import Call

P = ParamSpec("P")
T = TypeVar("T")

log = logging.getLogger("windlass.client")

_FIRST_LOOK_S = 0.01
_LONGEST_LOOK_S = 1.0


class ApplicationTasks(Protocol):
    """What a client needs of an application's tasks."""

    @property
    def accepts_unknown(self) -> bool:
        """Whether jobs of tasks without known code may be enqueued."""
        ...

    @property
    def declared_elsewhere(self) -> DeclaredTasks:
        """What other processes declared."""
        ...

    def describe(
        self, task: str, payload: Mapping[str, Any], options: Mapping[str, Any], declared: DeclaredOptions | None = None
    ) -> tuple[NewJob, bool]:
        """Make a job of a task known by name, and return whether this process has its code."""
        ...

    def has_code(self, task: str) -> bool:
        """Whether this process has a task's code."""
        ...


def move(
    name: str,
) -> tuple[Callable[[DatabaseClient, JobRef], Coroutine[Any, Any, Job]], Callable[[DatabaseClient, JobRef], Job]]:
    """Make the verb of operators that needs nothing but the job, and its twin."""
    entry = JOB_VERBS[name]

    async def call(self: DatabaseClient, job: JobRef) -> Job:
        verb = getattr(await self.store(), entry.in_store or name)
        moved: Moved = await verb([number_of(job)])
        return moved.one()

    call.__name__ = call.__qualname__ = name
    call.__doc__ = entry.summary
    return call, twin_of(call)


def of_store(
    verb_of: Callable[[Store], Callable[P, Coroutine[Any, Any, T]]],
) -> tuple[Callable[Concatenate[DatabaseClient, P], Coroutine[Any, Any, T]], Callable[Concatenate[DatabaseClient, P], T]]:
    """Make a verb of the store one of the client's, and its twin; the store is loaded when it is first used."""

    async def call(self: DatabaseClient, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await verb_of(await self.store())(*args, **kwargs)

    return call, twin_of(call)


class DatabaseClient:
    """Every verb; where it runs depends on the store that `opened` finds."""

    def __init__(self, opened: Callable[[], Awaitable[OpenedStore]], tasks: ApplicationTasks, hooks: Hooks) -> None:
        """Find the store through `opened`."""
        self._opened = opened
        self._tasks = tasks
        self._hooks = hooks

    @property
    def blocking(self) -> DatabaseClient:
        """The same verbs as coroutines that never suspend, for `windlass.core.blocking.run`."""
        return self

    async def store(self) -> Store:
        """Return the store below: every verb of the engine."""
        return (await self._opened()).store

    async def run(self, call: Call[T], connection: Any = None) -> T:
        """Run a call of the store's, in the caller's transaction if a connection is given."""
        return await (await self.store()).run(call, await self.driver(connection))

    async def driver(self, connection: Any) -> Any:
        """Find the driver's own connection inside what a caller holds; None stays None."""
        opened = await self._opened()
        return None if connection is None else await driver_connection(connection, is_blocking=opened.is_blocking)

    async def enqueue(self, task: str, payload: Mapping[str, Any] | None = None, **options: Unpack[UsingOptions]) -> Enqueued:
        """Enqueue a job of a task by its name; raises UnknownTask where no process could run it."""
        connection = options.pop("connection", None)
        return await self.enqueue_job(await self.described(task, payload or {}, options), connection)

    enqueue_sync = twin_of(enqueue)

    async def described(
        self, task: str, payload: Mapping[str, Any], options: Mapping[str, Any], *, accepts_unknown: bool = False
    ) -> NewJob:
        """Make a job of a task by its name, with the options that its code declares, here or in another process.

        Raises UnknownTask for a task that no process has declared, unless its lane is `pull` or unknown ones are accepted, and
        InvalidPayload naming the argument that is wrong.
        """
        if self._tasks.has_code(task):
            return self._tasks.describe(task, payload, options)[0]
        check_names(options, JOB_OPTIONS)
        may_be_absent = accepts_unknown or options.get("lane") == PULL_LANE or self._tasks.accepts_unknown
        declared = await self._tasks.declared_elsewhere.find(await self.store(), task, may_be_absent=may_be_absent)
        if declared is None and not may_be_absent:
            raise UnknownTask(task, [known.name for known in await (await self.store()).tasks.list()])
        return self._tasks.describe(task, payload, options, declared)[0]

    async def check_payload(self, task: str, payload: Mapping[str, Any]) -> None:
        """Check arguments by the code of a task, or by what another process declared of it; any are right for an unknown task.

        Raises InvalidPayload naming the argument that is wrong.
        """
        if self._tasks.has_code(task):
            self._tasks.describe(task, payload, {})
            return
        declared = await self._tasks.declared_elsewhere.find(await self.store(), task, may_be_absent=True)
        if declared is not None:
            self._tasks.describe(task, payload, {}, declared)

    async def declares(self, task: str) -> bool:
        """Whether this process has a task's code, or another has declared it lately."""
        return self._tasks.has_code(task) or (
            await self._tasks.declared_elsewhere.find(await self.store(), task, may_be_absent=True) is not None
        )

    def describe(self, task: str, payload: Mapping[str, Any], options: Mapping[str, Any]) -> tuple[NewJob, bool]:
        """Make a job of a task known by name, and return whether this process has its code."""
        return self._tasks.describe(task, payload, options)

    async def enqueue_job(self, job: NewJob, connection: Any = None) -> Enqueued:
        """Enqueue one job; returns after its commit, which it may share with others that come at the same time."""
        opened = await self._opened()
        if opened.tracing is not None:
            [enqueued] = await opened.tracing.send([job], partial(self._enqueue_each, opened, connection))
        elif connection is None:
            enqueued = await opened.outbox.enqueue(job)
        else:
            [enqueued] = await self._enqueue_on(opened, connection, [job])
        if hooks := self._hooks.of(Happening.ENQUEUE):
            _tell(hooks, job, enqueued)
        return enqueued

    async def enqueue_and_get(self, job: NewJob) -> Stored:
        """Enqueue one job as `enqueue_job` does, and see the row that it left."""
        opened = await self._opened()
        if opened.tracing is None:
            stored = await opened.counter.enqueue(job)
        else:
            [stored] = await opened.tracing.send([job], partial(_count_each, opened))
        if hooks := self._hooks.of(Happening.ENQUEUE):
            _tell(hooks, job, Enqueued(stored.id, stored.is_duplicate))
        return stored

    enqueue_and_get_sync = twin_of(enqueue_and_get)

    async def enqueue_jobs(self, jobs: Iterable[NewJob], connection: Any = None) -> Sequence[Enqueued]:
        """Enqueue jobs of any tasks, all or none, in one round trip."""
        described = jobs if isinstance(jobs, LikeJobs) else list(jobs)
        opened = await self._opened()
        answers: Sequence[Enqueued]
        if opened.tracing is not None and described:
            answers = await opened.tracing.send(described, partial(self._enqueue_all, opened, connection))
        else:
            answers = await self._enqueue_all(opened, connection, described)
        if hooks := self._hooks.of(Happening.ENQUEUE):
            for job, enqueued in zip(described, answers, strict=True):
                _tell(hooks, job, enqueued)
        return answers

    enqueue_jobs_sync = twin_of(enqueue_jobs)

    async def _enqueue_each(self, opened: OpenedStore, connection: Any, jobs: Sequence[NewJob]) -> Sequence[Enqueued]:
        if connection is None:
            return [await opened.outbox.enqueue(job) for job in jobs]
        return await self._enqueue_on(opened, connection, jobs)

    async def _enqueue_all(self, opened: OpenedStore, connection: Any, jobs: Sequence[NewJob]) -> Sequence[Enqueued]:
        if connection is None:
            return await opened.store.enqueue(jobs)
        return await self._enqueue_on(opened, connection, jobs)

    async def _enqueue_on(self, opened: OpenedStore, connection: Any, jobs: Sequence[NewJob]) -> Sequence[Enqueued]:
        return await opened.store.enqueue_on(await driver_connection(connection, is_blocking=opened.is_blocking), jobs)

    async def get(self, job: JobRef) -> Job:
        """Read a job; raises JobNotFound."""
        return await (await self.store()).get(number_of(job))

    get_sync = twin_of(get)

    list, list_sync = of_store(lambda store: store.list_jobs)

    async def executions(self, job: JobRef, *, limit: int = 100) -> Sequence[Execution]:
        """Read a job's ended runs, newest first."""
        return await (await self.store()).list_executions(number_of(job), limit=limit)

    executions_sync = twin_of(executions)

    async def dead_letters_of(self, job: JobRef) -> Sequence[DeadLetter]:
        """Read a job's dead letters, oldest first."""
        return await (await self.store()).list_dead_letters(number_of(job))

    dead_letters_of_sync = twin_of(dead_letters_of)

    counts, counts_sync = of_store(lambda store: store.count_jobs)
    stats, stats_sync = of_store(lambda store: store.insights.queue)

    async def explain(self, job: JobRef) -> Explanation:
        """Explain why a job does not run, or why it ran when it did; raises JobNotFound."""
        return await (await self.store()).explain(number_of(job))

    explain_sync = twin_of(explain)

    async def cancel(self, job: JobRef, reason: str | None = None) -> Job:
        """Cancel a job at once; a late success of a running one is refused. JobCancelled and `last_error` carry the reason."""
        return (await (await self.store()).cancel([number_of(job)], reason)).one()

    cancel_sync = twin_of(cancel)

    stop, stop_sync = move("stop")
    pause, pause_sync = move("pause")
    resume, resume_sync = move("resume")
    disable, disable_sync = move("disable")
    enable, enable_sync = move("enable")
    run_now, run_now_sync = move("run_now")
    retry, retry_sync = move("retry")

    async def edit(self, job: JobRef, **changes: Unpack[EditOptions]) -> Job:
        """Change a job; its next run stays where it is. Raises InvalidPayload for a payload that its task would not take."""
        if (payload := changes.get("payload")) is not None:
            await self.check_payload((await self.get(job)).task, payload)
        return (await (await self.store()).edit(number_of(job), edit_of(changes))).one()

    edit_sync = twin_of(edit)

    async def wait(self, job: JobRef, timeout: str | float | timedelta | None = None) -> Any:  # noqa: ASYNC109 - works without a loop too
        """Wait until a job has ended and return its result; raises JobFailed, JobCancelled or WaitTimeout."""
        number = number_of(job)
        limit = None if timeout is None else parse_duration(timeout, field="timeout").total_seconds()
        opened = await self._opened()
        started, pause = time.monotonic(), _FIRST_LOOK_S
        while (found := await opened.store.get(number)).state not in CLOSED:
            if found.cadence is not None:
                raise InvalidInput("job", number, "is recurring: it does not end, so its result cannot be awaited")
            left = pause if limit is None else limit - (time.monotonic() - started)
            if left <= 0:
                raise WaitTimeout(number, found.state)
            await opened.sleep(min(pause, left))
            pause = min(pause * 1.5, _LONGEST_LOOK_S)
        return await _result(opened.store, found)

    wait_sync = twin_of(wait)


async def _count_each(opened: OpenedStore, jobs: Sequence[NewJob]) -> Sequence[Stored]:
    return [await opened.counter.enqueue(job) for job in jobs]


async def _result(store: Store, job: Job) -> Any:
    if job.state is JobState.CANCELLED:
        raise JobCancelled(job.id, "was cancelled", job.cancel_reason)
    runs = await store.list_executions(job.id, limit=1)
    if job.state is JobState.FAILED:
        raise JobFailed(job.id, "failed", job.last_error, runs[0].stack_trace if runs else None)
    return runs[0].result if runs else None


def _tell(hooks: Sequence[Callable[[Any], Any]], job: NewJob, enqueued: Enqueued) -> None:
    event = EnqueueEvent(enqueued.id, job.task, job.lane, enqueued.is_duplicate, job.correlation_id, job.parent_id)
    for hook in hooks:
        try:
            hook(event)
        except Exception:
            # The job is in the database: a hook that fails must not make its caller enqueue it again.
            log.exception("job %d: an enqueue hook failed", enqueued.id)
