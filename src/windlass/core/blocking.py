"""Coroutines that never suspend, run without an event loop."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

N = TypeVar("N")
P = ParamSpec("P")
T = TypeVar("T")


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine over a blocking store to its end; it works inside a running loop too, which it then holds up."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        value: T = done.value
        return value
    coroutine.close()
    raise RuntimeError(f"{coroutine!r} waits for an event loop and cannot be run without one")


def twin_of(verb: Callable[Concatenate[N, P], Coroutine[Any, Any, T]]) -> Callable[Concatenate[N, P], T]:
    """Make a plain function of a verb: it goes to `self.blocking`, whose coroutines never suspend."""

    @wraps(verb)
    def call(self: N, /, *args: P.args, **kwargs: P.kwargs) -> T:
        here: Any = self
        return run(verb(here.blocking, *args, **kwargs))

    return call
