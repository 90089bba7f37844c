"""A noun's verbs, each made of the call that describes it."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, Self, TypeVar

from windlass.core.blocking import twin_of
from windlass.store.calls.call import Call

P = ParamSpec("P")
T = TypeVar("T")


class Runner(Protocol):
    """What runs calls: a store, or a client that opens one when the first call comes."""

    @property
    def blocking(self) -> Runner:
        """The same for code without an event loop: its coroutines never suspend."""
        ...

    async def run(self, call: Call[T], connection: Any = None) -> T:
        """Run a call in a transaction of its own, or in the caller's on `connection`."""
        ...


class Noun:
    """The verbs of one noun."""

    def __init__(self, runner: Runner) -> None:
        """Let `runner` run the calls."""
        self._runner = runner

    @property
    def blocking(self) -> Self:
        """The same verbs as coroutines that never suspend."""
        return type(self)(self._runner.blocking)

    async def _run(self, call: Call[T], connection: Any = None) -> T:
        return await self._runner.run(call, connection)


def verb(
    describe: Callable[P, Call[T]],
) -> tuple[Callable[Concatenate[Noun, P], Coroutine[Any, Any, T]], Callable[Concatenate[Noun, P], T]]:
    """Make the verb that runs what `describe` returns, and its twin for code without an event loop."""

    @wraps(describe)
    async def call(self: Noun, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._runner.run(describe(*args, **kwargs))

    return call, twin_of(call)
