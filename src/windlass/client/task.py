"""A declared task: the function itself, and the methods that enqueue it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from copy import copy
from functools import update_wrapper
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, Self, TypeVar, Unpack, overload

from windlass.client.arguments import Arguments
from windlass.client.client import DatabaseClient
from windlass.client.handle import EnqueuedJob, EnqueuedJobs, TaskCall
from windlass.client.options import (
    TASK_OPTIONS,
    USING_OPTIONS,
    UsingOptions,
    check_names,
    error_types,
    isolation_of,
    job_fields,
    retries_by_error,
)
from windlass.client.rules import declared_rule
from windlass.client.scheduler import scheduled
from windlass.client.unique import key_rule, written_rule
from windlass.core.blocking import run
from windlass.core.current import current_job
from windlass.core.job import LikeJobs, NewJob
from windlass.core.payload import JsonText, encode_object
from windlass.core.task import TaskSpec
from windlass.errors import InvalidInput


class RunContext(Protocol):
    """What distinguishes the context of a run from an argument, for type checkers."""

    @property
    def job_id(self) -> int:
        """The job's number."""
        ...

    @property
    def again(self) -> Any:
        """When the handler wants to run next."""
        ...


P = ParamSpec("P")
A = ParamSpec("A")
R_co = TypeVar("R_co", covariant=True)
T = TypeVar("T")
C = TypeVar("C", bound=RunContext)


class Task(Generic[P, R_co]):
    """A function that can be enqueued; `P` are its parameters.

    That it is enqueued without its context is in the overloads of its methods, and not in overloads of the decorator: mypy does
    not choose among those for a function that has `Any` in its signature, and makes the whole task an `Any`.
    """

    def __init__(
        self,
        function: Callable[P, R_co],
        options: Mapping[str, Any],
        clients: tuple[DatabaseClient, DatabaseClient],
        *,
        takes_context: bool,
    ) -> None:
        """Read the options; `clients` are for asyncio and for blocking code."""
        check_names(options, TASK_OPTIONS)
        self._client, self._twin = clients
        self.takes_context = takes_context
        """Whether the function's first parameter is the context."""
        self._arguments = Arguments(function, takes_context=takes_context, model=options.get("payload"))
        self._fields = job_fields({name: options[name] for name in _STORED if name in options})
        self._key = key_rule(options.get("unique"), self._arguments)
        self._subject: Callable[..., str | None] | None = options.get("subject")
        self._connection: Any = None
        self.spec = _spec(function, options, self._fields, self._arguments, takes_context=takes_context)
        self._fields["task"] = self.spec.name
        self._rule = declared_rule(options)
        self._schedule = {name: options.get(name) for name in ("schedule_payload", "spawn", "child_key")}
        wrapper: Any = self
        update_wrapper(wrapper, function)

    @property
    def name(self) -> str:
        """The task's name, by which jobs find their code."""
        return self.spec.name

    @property
    def arguments(self) -> Arguments:
        """What its jobs carry."""
        return self._arguments

    def __repr__(self) -> str:
        return f"<task {self.name!r}>"

    def using(self, **options: Unpack[UsingOptions]) -> Self:
        """Return the same task with other options for its next jobs."""
        check_names(options, USING_OPTIONS)
        connection = options.pop("connection", None)
        changed = copy(self)
        changed.__dict__["_fields"] = {**self._fields, **job_fields(options)}
        changed.__dict__["_connection"] = self._connection if connection is None else connection
        return changed

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        """Call the plain function."""
        result: R_co = self.spec.function(*args, **kwargs)
        return result

    @overload
    def job(self: Task[Concatenate[C, A], Any], *args: A.args, **kwargs: A.kwargs) -> NewJob: ...

    @overload
    def job(self: Task[A, Any], *args: A.args, **kwargs: A.kwargs) -> NewJob: ...

    def job(self, *args: Any, **kwargs: Any) -> NewJob:
        """Describe a job without enqueueing it; raises InvalidPayload naming the argument that is wrong."""
        return self._described(self._arguments.bind(args, kwargs))

    def _described(self, given: dict[str, Any], payload: JsonText | None = None) -> NewJob:
        fields = {**self._fields, "payload": payload or self._arguments.encode(given)}
        if self._key is not None and "unique_key" not in fields:
            fields["unique_key"] = self._key(given)
        if self._subject is not None and "subject" not in fields:
            fields["subject"] = self._subject(**self._arguments.complete(given))
        return NewJob(**descended(fields))

    @overload
    def call(self: Task[Concatenate[C, A], Any], *args: A.args, **kwargs: A.kwargs) -> TaskCall[P]: ...

    @overload
    def call(self: Task[A, Any], *args: A.args, **kwargs: A.kwargs) -> TaskCall[P]: ...

    def call(self, *args: Any, **kwargs: Any) -> TaskCall[P]:
        """Describe the arguments of one job for `enqueue_many`, so that a type checker sees them."""
        return TaskCall(self._arguments.bind(args, kwargs))

    def _all_described(self, given: Iterable[Mapping[str, Any] | TaskCall[P]]) -> Sequence[NewJob]:
        calls = [each.arguments if isinstance(each, TaskCall) else each for each in given]
        if self._key is not None or self._subject is not None:
            return [self._described(dict(each)) for each in calls]
        encode = self._arguments.encode
        return LikeJobs(NewJob(**descended(dict(self._fields))), [encode(dict(each)) for each in calls])

    def job_of_payload(self, payload: Mapping[str, Any]) -> NewJob:
        """Describe a job from JSON values, as they come from outside."""
        text = encode_object(dict(payload))
        return self._described(self._arguments.decode(text), text)

    def schedule(self, app: str) -> NewJob | None:
        """Describe the schedule this task was declared with; raises InvalidPayload when its arguments do not fit."""
        if self._rule is None:
            return None
        job = self.job_of_payload(self._schedule["schedule_payload"] or {})
        return scheduled(job, self.name, self._rule, self._schedule, declared_by=app)

    @overload
    async def enqueue(
        self: Task[Concatenate[C, A], Coroutine[Any, Any, T]], *args: A.args, **kwargs: A.kwargs
    ) -> EnqueuedJob[T]: ...

    @overload
    async def enqueue(self: Task[Concatenate[C, A], T], *args: A.args, **kwargs: A.kwargs) -> EnqueuedJob[T]: ...

    @overload
    async def enqueue(self: Task[A, Coroutine[Any, Any, T]], *args: A.args, **kwargs: A.kwargs) -> EnqueuedJob[T]: ...

    @overload
    async def enqueue(self: Task[A, T], *args: A.args, **kwargs: A.kwargs) -> EnqueuedJob[T]: ...

    async def enqueue(self, *args: Any, **kwargs: Any) -> EnqueuedJob[Any]:
        """Enqueue a job with these arguments; returns after the commit."""
        job = self._described(self._arguments.bind(args, kwargs))
        return EnqueuedJob.of(await self._client.enqueue_job(job, self._connection), (self._client, self._twin))

    @overload
    def enqueue_sync(
        self: Task[Concatenate[C, A], Coroutine[Any, Any, T]], *args: A.args, **kwargs: A.kwargs
    ) -> EnqueuedJob[T]: ...

    @overload
    def enqueue_sync(self: Task[Concatenate[C, A], T], *args: A.args, **kwargs: A.kwargs) -> EnqueuedJob[T]: ...

    @overload
    def enqueue_sync(self: Task[A, Coroutine[Any, Any, T]], *args: A.args, **kwargs: A.kwargs) -> EnqueuedJob[T]: ...

    @overload
    def enqueue_sync(self: Task[A, T], *args: A.args, **kwargs: A.kwargs) -> EnqueuedJob[T]: ...

    def enqueue_sync(self, *args: Any, **kwargs: Any) -> EnqueuedJob[Any]:
        """Do the same without an event loop."""
        job = self._described(self._arguments.bind(args, kwargs))
        return EnqueuedJob.of(run(self._twin.enqueue_job(job, self._connection)), (self._client, self._twin))

    @overload
    async def enqueue_many(
        self: Task[P, Coroutine[Any, Any, T]], calls: Iterable[Mapping[str, Any] | TaskCall[P]]
    ) -> Sequence[EnqueuedJob[T]]: ...

    @overload
    async def enqueue_many(self: Task[P, T], calls: Iterable[Mapping[str, Any] | TaskCall[P]]) -> Sequence[EnqueuedJob[T]]: ...

    async def enqueue_many(self, calls: Iterable[Mapping[str, Any] | TaskCall[P]]) -> Sequence[EnqueuedJob[Any]]:
        """Enqueue a job for each set of arguments, all or none, in one round trip; `task.call(…)` makes one that is checked."""
        answers = await self._client.enqueue_jobs(self._all_described(calls), self._connection)
        return EnqueuedJobs(answers, (self._client, self._twin))

    @overload
    def enqueue_many_sync(
        self: Task[P, Coroutine[Any, Any, T]], calls: Iterable[Mapping[str, Any] | TaskCall[P]]
    ) -> Sequence[EnqueuedJob[T]]: ...

    @overload
    def enqueue_many_sync(self: Task[P, T], calls: Iterable[Mapping[str, Any] | TaskCall[P]]) -> Sequence[EnqueuedJob[T]]: ...

    def enqueue_many_sync(self, calls: Iterable[Mapping[str, Any] | TaskCall[P]]) -> Sequence[EnqueuedJob[Any]]:
        """Do the same without an event loop."""
        answers = run(self._twin.enqueue_jobs(self._all_described(calls), self._connection))
        return EnqueuedJobs(answers, (self._client, self._twin))


_STORED = ("lane", "priority", "max_attempts", "retry", "timeout", "unique_scope", "on_conflict", "metadata")
_IN_SPEC = ("lane", "priority", "max_attempts", "retry", "timeout")


def descended(fields: dict[str, Any]) -> dict[str, Any]:
    """Add what a job inherits from the one whose handler enqueues it."""
    parent = current_job()
    if parent is not None:
        fields.setdefault("parent_id", parent.id)
        fields.setdefault("correlation_id", parent.correlation_id)
    return fields


def takes(function: Callable[..., Any], context: type) -> bool:
    """Whether the first parameter is the context: by its annotation, or by the name ctx where it has none."""
    first = next(iter(inspect.signature(function).parameters.values()), None)
    if first is None:
        return False
    found = first.annotation
    if isinstance(found, str):
        names = getattr(inspect.unwrap(function), "__globals__", {})
        # Imported for type checkers only, the name is all there is.
        found = names.get(found, context if found.rpartition(".")[2] == context.__name__ else None)
    if found is inspect.Parameter.empty:
        return first.name == "ctx"
    return isinstance(found, type) and issubclass(found, context)


def _spec(
    function: Callable[..., Any],
    options: Mapping[str, Any],
    fields: Mapping[str, Any],
    arguments: Arguments,
    *,
    takes_context: bool,
) -> TaskSpec:
    return TaskSpec(
        name=options.get("name") or _name(function),
        function=function,
        arguments=arguments.decode,
        takes_context=takes_context,
        isolation=isolation_of(function, options.get("isolation")),
        never_retry=error_types(options.get("never_retry", ())),
        retry_by_error=retries_by_error(options.get("retry_by_error", {})),
        breaker=options.get("breaker"),
        is_exclusive=options.get("exclusive", False),
        memory_limit_mb=options.get("memory_limit_mb"),
        declared=lambda: _declared(options, fields, arguments),
        **{name: fields[name] for name in _IN_SPEC if name in fields},
    )


def _declared(options: Mapping[str, Any], fields: Mapping[str, Any], arguments: Arguments) -> dict[str, Any]:
    stored = {name: fields.get(name) for name in _STORED if name not in _IN_SPEC}
    # Read when a worker starts: only then are all names in annotations defined.
    return {**stored, "unique": written_rule(options.get("unique")), "schema": arguments.schema()}


def _name(function: Callable[..., Any]) -> str:
    name = getattr(function, "__name__", "<lambda>")
    if name == "<lambda>":
        raise InvalidInput("name", function, "give a name: the function has none")
    return str(name)
