"""Coroutines that never suspend, run without an event loop."""

from __future__ import annotations

import time
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


async def sleep(seconds: float) -> None:
    """Sleep as `asyncio.sleep` does, blocking."""
    time.sleep(seconds)  # noqa: ASYNC251 - that is what it is for
