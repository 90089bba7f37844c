"""Functions of the application that go around every run."""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator, Sequence
from dataclasses import replace
from functools import partial, wraps
from typing import Any, NamedTuple, NoReturn, TypeVar

from windlass.core.task import Isolation, Registry, TaskSpec
from windlass.errors import ConfigError, InvalidInput
from windlass.worker.context import JobContext


class HandlerCall(NamedTuple):
    """A run as middleware sees it: the handler is about to be called."""

    context: JobContext
    """The run's context, also where the handler takes none."""
    arguments: dict[str, Any]
    """What the handler is called with; middleware may change it."""


Steps = Generator[None, Any, None] | Iterator[None]
AsyncSteps = AsyncGenerator[None, Any] | AsyncIterator[None]
Middleware = Callable[[HandlerCall], Steps | AsyncSteps]
"""A generator function that yields once, where the handler runs; `yield` returns the handler's result or raises its exception."""
M = TypeVar("M", bound=Middleware)
_NAMED = 5


def check_middleware(function: object, *, only: object = None) -> None:
    """Raise InvalidInput for what does not yield, and for a limit that cannot be kept."""
    if only not in (None, "async"):
        raise InvalidInput("only", only, 'must be "async"')
    if only is not None and inspect.isgeneratorfunction(function):
        raise InvalidInput("only", only, "is for middleware that is `async`; a plain generator goes around every run")
    if not inspect.isgeneratorfunction(function) and not inspect.isasyncgenfunction(function):
        raise InvalidInput("middleware", function, "must be a function with one `yield` where the handler runs, undecorated")


def check_goes_around(registry: Registry, middleware: Sequence[Middleware]) -> None:
    """Raise ConfigError when middleware awaits and a task is a function: the run would be without it."""
    awaiting = [each.__qualname__ for each in middleware if inspect.isasyncgenfunction(each)]
    functions = [spec.name for spec in registry if not _is_coroutine(spec)] if awaiting else []
    if functions:
        raise ConfigError(
            f"middleware {', '.join(awaiting)}: is `async` and cannot go around functions, and these tasks are functions: "
            f"{_shortened(functions)}; make it a plain generator, or declare it with @app.middleware(only='async') if they may "
            "run without it"
        )


def _shortened(names: list[str]) -> str:
    shown = ", ".join(names[:_NAMED])
    return shown if len(names) <= _NAMED else f"{shown} and {len(names) - _NAMED} more"


def wrapped(registry: Registry, middleware: Sequence[Middleware]) -> Registry:
    """Return the same tasks with middleware around their functions, the first one outermost; without any, the registry itself."""
    if not middleware:
        return registry
    made = Registry()
    for spec in registry:
        made.add(_wrapped(spec, middleware))
    return made


def _wrapped(spec: TaskSpec, middleware: Sequence[Middleware]) -> TaskSpec:
    # The wrapper is one more handler, so that a worker needs no code for middleware.
    around = _around_coroutine if _is_coroutine(spec) else _around_function
    return replace(spec, function=around(spec, middleware), takes_context=True)


def _is_coroutine(spec: TaskSpec) -> bool:
    return spec.isolation is Isolation.ASYNC or inspect.iscoroutinefunction(inspect.unwrap(spec.function))


def _around_function(spec: TaskSpec, middleware: Sequence[Middleware]) -> Callable[..., Any]:
    call: Callable[[HandlerCall], Any] = partial(_handle, spec.function, spec.takes_context)
    for each in reversed(middleware):
        # What awaits cannot go around a function, which has no event loop.
        if not inspect.isasyncgenfunction(each):
            call = partial(_run_function, each, call)

    @wraps(spec.function)
    def run(context: JobContext, /, **arguments: Any) -> Any:
        return call(HandlerCall(context, arguments))

    return run


def _around_coroutine(spec: TaskSpec, middleware: Sequence[Middleware]) -> Callable[..., Any]:
    call: Callable[[HandlerCall], Any] = partial(_handle, spec.function, spec.takes_context)
    for each in reversed(middleware):
        call = partial(_run_coroutine_async if inspect.isasyncgenfunction(each) else _run_coroutine, each, call)

    @wraps(spec.function)
    async def run(context: JobContext, /, **arguments: Any) -> Any:
        return await call(HandlerCall(context, arguments))

    return run


def _handle(function: Callable[..., Any], takes_context: bool, call: HandlerCall) -> Any:  # noqa: FBT001 - bound by partial
    return function(call.context, **call.arguments) if takes_context else function(**call.arguments)


def _run_function(middleware: Callable[[HandlerCall], Any], inner: Callable[[HandlerCall], Any], call: HandlerCall) -> Any:
    steps = middleware(call)
    _begin(middleware, steps)
    try:
        result = inner(call)
    except BaseException as error:  # noqa: BLE001 - middleware sees whatever a handler raises
        _fail(middleware, steps, error)
        return None
    _end(middleware, steps, result)
    return result


async def _run_coroutine(middleware: Callable[[HandlerCall], Any], inner: Callable[[HandlerCall], Any], call: HandlerCall) -> Any:
    steps = middleware(call)
    _begin(middleware, steps)
    try:
        result = await inner(call)
    except BaseException as error:  # noqa: BLE001 - as above
        _fail(middleware, steps, error)
        return None
    _end(middleware, steps, result)
    return result


async def _run_coroutine_async(
    middleware: Callable[[HandlerCall], Any], inner: Callable[[HandlerCall], Any], call: HandlerCall
) -> Any:
    steps = middleware(call)
    try:
        await anext(steps)
    except StopAsyncIteration:
        _refuse(middleware)
    try:
        result = await inner(call)
    except BaseException as error:  # noqa: BLE001 - as above
        await _fail_async(middleware, steps, error)
        return None
    await _end_async(middleware, steps, result)
    return result


def _begin(middleware: Callable[..., Any], steps: Any) -> None:
    try:
        next(steps)
    except StopIteration:
        _refuse(middleware)


def _end(middleware: Callable[..., Any], steps: Any, result: Any) -> None:
    try:
        steps.send(result)
    except StopIteration:
        return
    steps.close()
    _refuse(middleware)


async def _end_async(middleware: Callable[..., Any], steps: Any, result: Any) -> None:
    try:
        await steps.asend(result)
    except StopAsyncIteration:
        return
    await steps.aclose()
    _refuse(middleware)


def _fail(middleware: Callable[..., Any], steps: Any, error: BaseException) -> None:
    """Raise the error at the `yield`; returns where middleware does not raise it again."""
    trace = error.__traceback__
    try:
        steps.throw(error)
    except StopIteration:
        return
    except BaseException as raised:
        # With the trace it came with: that of middleware would stand above the handler's own.
        if raised is error or _is_forbidden(raised, error):
            raise error.with_traceback(trace)  # noqa: B904 - it is the same error
        raise
    steps.close()
    _refuse(middleware)


async def _fail_async(middleware: Callable[..., Any], steps: Any, error: BaseException) -> None:
    trace = error.__traceback__
    try:
        await steps.athrow(error)
    except StopAsyncIteration:
        return
    except BaseException as raised:
        if raised is error or _is_forbidden(raised, error):
            raise error.with_traceback(trace)  # noqa: B904 - as above
        raise
    await steps.aclose()
    _refuse(middleware)


def _is_forbidden(raised: BaseException, error: BaseException) -> bool:
    """Whether Python put a RuntimeError in place of an error that no generator may let pass."""
    return isinstance(error, StopIteration | StopAsyncIteration) and raised.__cause__ is error


def _refuse(middleware: Callable[..., Any]) -> NoReturn:
    raise InvalidInput("middleware", getattr(middleware, "__qualname__", middleware), "must yield exactly once")
