"""Verbs for code without an event loop, made of those for asyncio."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from windlass.core.blocking import run

C = TypeVar("C")
P = ParamSpec("P")
R = TypeVar("R")


def twin_of(verb: Callable[Concatenate[C, P], Coroutine[Any, Any, R]]) -> Callable[Concatenate[C, P], R]:
    """Make a plain function of a verb: it goes to `self.blocking`, whose coroutines never suspend."""

    @wraps(verb)
    def call(self: C, /, *args: P.args, **kwargs: P.kwargs) -> R:
        here: Any = self
        return run(verb(here.blocking, *args, **kwargs))

    return call
