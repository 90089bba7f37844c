"""Methods written once, as coroutines, for the blocking and the async client."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterator
from functools import wraps
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, overload

from windlass.core.blocking import run
from windlass.http_client.ask import Ask
from windlass.http_client.transport import Transport

P = ParamSpec("P")
R = TypeVar("R")
M = TypeVar("M")
S = TypeVar("S", bound="RemoteNoun[Any]")


class Blocks:
    """Marks the nouns of the client for blocking code."""


class Awaits:
    """Marks the nouns of the client for asyncio."""


class RemoteNoun(Generic[M]):
    """Something whose methods are requests."""

    def __init__(self, transport: Transport) -> None:
        """Send them over `transport`; over a blocking one every method blocks."""
        self._transport = transport


class RemoteMethod(Generic[P, R]):
    """A method made of a coroutine function."""

    def __init__(self, function: Callable[Concatenate[Any, P], Coroutine[Any, Any, R]]) -> None:
        """Await `function` in the one client, run it to its end in the other."""
        self._awaited, self._blocking = function, _blocking(function)

    @overload
    def __get__(self, noun: RemoteNoun[Blocks], owner: type) -> Callable[P, R]: ...
    @overload
    def __get__(self, noun: RemoteNoun[Awaits], owner: type) -> Callable[P, Coroutine[Any, Any, R]]: ...
    @overload
    def __get__(self, noun: None, owner: type) -> Callable[..., Any]: ...
    def __get__(self, noun: Any, owner: type) -> Callable[..., Any]:
        """Return the method as its client has it."""
        return _bound(self._awaited, self._blocking, noun, owner)


class RemoteStream(Generic[P, R]):
    """A method made of a function that is an asynchronous generator."""

    def __init__(self, function: Callable[Concatenate[Any, P], AsyncGenerator[R, None]]) -> None:
        """Go through what `function` yields, blocking or not."""
        self._awaited, self._blocking = function, _blocking_stream(function)

    @overload
    def __get__(self, noun: RemoteNoun[Blocks], owner: type) -> Callable[P, Iterator[R]]: ...
    @overload
    def __get__(self, noun: RemoteNoun[Awaits], owner: type) -> Callable[P, AsyncIterator[R]]: ...
    @overload
    def __get__(self, noun: None, owner: type) -> Callable[..., Any]: ...
    def __get__(self, noun: Any, owner: type) -> Callable[..., Any]:
        """Return the method as its client has it."""
        return _bound(self._awaited, self._blocking, noun, owner)


def verb(describe: Callable[P, Ask[R]]) -> RemoteMethod[P, R]:
    """Make a method that sends what `describe` describes."""

    @wraps(describe)
    async def send(self: RemoteNoun[Any], /, *args: P.args, **kwargs: P.kwargs) -> R:
        return await self._transport.send(describe(*args, **kwargs))

    return RemoteMethod(send)


def _bound(awaited: Callable[..., Any], blocking: Callable[..., Any], noun: Any, owner: type) -> Callable[..., Any]:
    if noun is None:
        # A noun has a client only when it is made; the clients themselves are known by their class.
        return blocking if issubclass(owner, Blocks) else awaited
    method: Callable[..., Any] = (blocking if noun._transport.is_blocking else awaited).__get__(noun, owner)  # noqa: SLF001
    return method


def _blocking(function: Callable[Concatenate[S, P], Coroutine[Any, Any, R]]) -> Callable[Concatenate[S, P], R]:
    @wraps(function)
    def call(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return run(function(self, *args, **kwargs))

    return call


def _blocking_stream(function: Callable[Concatenate[S, P], AsyncGenerator[R, None]]) -> Callable[Concatenate[S, P], Iterator[R]]:
    @wraps(function)
    def walk(self: S, /, *args: P.args, **kwargs: P.kwargs) -> Iterator[R]:
        steps = function(self, *args, **kwargs)
        try:
            while True:
                try:
                    found = run(_next(steps))
                except StopAsyncIteration:
                    return
                yield found
        finally:
            run(_close(steps))

    return walk


async def _next(steps: AsyncGenerator[R, None]) -> R:
    return await anext(steps)


async def _close(steps: AsyncGenerator[Any, None]) -> None:
    await steps.aclose()
