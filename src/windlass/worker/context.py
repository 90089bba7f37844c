"""The context of a handler: its job, and the calls it may make."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, Concatenate, NamedTuple, ParamSpec, Protocol, TypeVar, overload

from windlass.core.checks import check_instant, check_range
from windlass.core.durations import parse_duration
from windlass.core.ids import job_uuid
from windlass.core.item import Added
from windlass.core.job import Claimed, Enqueued
from windlass.errors import InvalidInput

P = ParamSpec("P")
E = TypeVar("E", bound=Enqueued)
E_co = TypeVar("E_co", bound=Enqueued, covariant=True)
_MOST = 2**63 - 1


class HandlerLink(Protocol):
    """Sends a handler's calls to the store: directly, from a thread, or through a child process's pipe."""

    @property
    def is_stopping(self) -> bool:
        """Whether the run is to end: cancelled, timed out, lease lost or shutdown past its grace."""
        ...

    async def call(self, verb: str, arguments: Mapping[str, Any]) -> Any:
        """Ask from a coroutine."""
        ...

    def call_sync(self, verb: str, arguments: Mapping[str, Any]) -> Any:
        """Ask from a function, blocking."""
        ...


class Enqueues(Protocol[P, E_co]):
    """A task, as far as a handler needs it to make a child: `P` are its parameters, `E_co` is what an enqueue returns."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Any:
        """Call the plain function."""
        ...

    @property
    def enqueue(self) -> Callable[..., Coroutine[Any, Any, E_co]]:
        """Enqueue a job."""
        ...

    @property
    def enqueue_sync(self) -> Callable[..., E_co]:
        """Do the same, blocking."""
        ...


class Again(NamedTuple):
    """When a handler wants to run next: an instant, or a wait from the end of the run."""

    at: datetime | None
    after: timedelta | None


class JobContext:
    """One run of one job. Coroutines await the plain calls, functions use their `_sync` twins."""

    __slots__ = ("_items_crawled", "_items_indexed", "_job", "_link", "again", "metadata", "state")

    def __init__(self, job: Claimed, link: HandlerLink, state: Any = None) -> None:
        """Describe `job`; requests go through `link`."""
        self._job = job
        self._link = link
        self.state = state
        """What the application's lifespan opened: database pools, clients."""
        self.again: Again | None = None
        self._items_crawled: int | None = None
        self._items_indexed: int | None = None
        self.metadata: dict[str, Any] | None = None
        """Kept with the execution, as `items_crawled` and `items_indexed` are."""

    @property
    def items_crawled(self) -> int | None:
        """How much the run has read; a handler may set it."""
        return self._items_crawled

    @items_crawled.setter
    def items_crawled(self, count: int | None) -> None:
        self._items_crawled = _checked("items_crawled", count)

    @property
    def items_indexed(self) -> int | None:
        """How much of it the run has kept; a handler may set it."""
        return self._items_indexed

    @items_indexed.setter
    def items_indexed(self, count: int | None) -> None:
        self._items_indexed = _checked("items_indexed", count)

    @property
    def job_id(self) -> int:
        """The job's number."""
        return self._job.id

    @property
    def task(self) -> str:
        """The task's name."""
        return self._job.task

    @property
    def lane(self) -> str:
        """The job's lane."""
        return self._job.lane

    @property
    def attempt(self) -> int:
        """Which try this is; the first is 1."""
        return self._job.attempt

    @property
    def max_attempts(self) -> int | None:
        """The job's own limit of tries, if it has one."""
        return self._job.max_attempts

    @property
    def execution(self) -> int:
        """Which run of the job this is; the first is 1."""
        return self._job.execution

    @property
    def correlation_id(self) -> str:
        """What ties this job to others: what it was given, else its own UUID."""
        return self._job.correlation_id or str(job_uuid(self._job.id))

    @property
    def parent_id(self) -> int | None:
        """The job whose handler enqueued this one."""
        return self._job.parent_id

    @property
    def subject(self) -> str | None:
        """What the job is about."""
        return self._job.subject

    @property
    def slot_at(self) -> datetime | None:
        """When a recurring job was planned to run; retries leave it."""
        return self._job.slot_at

    @property
    def cursor(self) -> str | None:
        """How far an earlier run had come, by its own count."""
        return self._job.last_cursor

    @property
    def consecutive_failures(self) -> int:
        """How many runs in a row have failed before this one."""
        return self._job.consecutive_failures

    @property
    def cancelled(self) -> bool:
        """Whether the run is to end; a long loop in a function should look now and then."""
        return self._link.is_stopping

    def run_again(self, *, at: datetime | None = None, after: str | float | timedelta | None = None) -> None:
        """Choose the next run of a recurring job, once this one has succeeded."""
        if (at is None) == (after is None):
            raise InvalidInput("at", at, "give either at or after")
        if at is not None:
            check_instant("at", at)
        self.again = Again(at, None if after is None else parse_duration(after, field="after"))

    @overload
    async def enqueue(self, task: Enqueues[Concatenate[JobContext, P], E], /, *args: P.args, **kwargs: P.kwargs) -> E: ...

    @overload
    async def enqueue(self, task: Enqueues[P, E], /, *args: P.args, **kwargs: P.kwargs) -> E: ...

    async def enqueue(self, task: Enqueues[Any, E], /, *args: Any, **kwargs: Any) -> E:
        """Enqueue a child: this job is its parent, its correlation id follows. `task.enqueue(…)` in a handler does the same."""
        return await task.enqueue(*args, **kwargs)

    @overload
    def enqueue_sync(self, task: Enqueues[Concatenate[JobContext, P], E], /, *args: P.args, **kwargs: P.kwargs) -> E: ...

    @overload
    def enqueue_sync(self, task: Enqueues[P, E], /, *args: P.args, **kwargs: P.kwargs) -> E: ...

    def enqueue_sync(self, task: Enqueues[Any, E], /, *args: Any, **kwargs: Any) -> E:
        """Do what `enqueue` does, from a function."""
        return task.enqueue_sync(*args, **kwargs)

    async def progress(self, count: int | None = None, cursor: str | None = None, message: str | None = None) -> None:
        """Note how far the run has come; the cursor survives a crash. Raises LeaseLost when the job is no longer ours."""
        await self._link.call("progress", {"count": count, "cursor": cursor, "message": message})

    def progress_sync(self, count: int | None = None, cursor: str | None = None, message: str | None = None) -> None:
        """Do what `progress` does, from a function."""
        self._link.call_sync("progress", {"count": count, "cursor": cursor, "message": message})

    async def items(self, items: Iterable[Mapping[str, Any]]) -> Added:
        """Keep items of the job's collection; known ones are counted and left alone."""
        return Added(*await self._link.call("items", {"items": list(items)}))

    def items_sync(self, items: Iterable[Mapping[str, Any]]) -> Added:
        """Do what `items` does, from a function."""
        return Added(*self._link.call_sync("items", {"items": list(items)}))


def _checked(field: str, count: int | None) -> int | None:
    if count is not None:
        check_range(field, count, 0, _MOST)
    return count
