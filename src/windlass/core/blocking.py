"""Coroutines that never suspend, run without an event loop."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, TypeVar

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
