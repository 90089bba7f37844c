"""Keeps account of the asyncio tasks that handlers start, so that none outlives its run."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from windlass.core.current import run_tasks


@contextmanager
def tracked_tasks(loop: asyncio.AbstractEventLoop) -> Iterator[None]:
    """Note the tasks that runs on this loop start, for as long as the block lasts; several workers may share a loop."""
    factory = loop.get_task_factory()
    tracking = factory if isinstance(factory, _TrackingFactory) else _TrackingFactory(factory)
    tracking.users += 1
    loop.set_task_factory(tracking)
    try:
        yield
    finally:
        tracking.users -= 1
        if not tracking.users and loop.get_task_factory() is tracking:
            loop.set_task_factory(tracking.previous)


class _TrackingFactory:
    """Makes tasks as the loop did before, and hands each to the run whose handler asked for it."""

    def __init__(self, previous: Any) -> None:
        self.previous = previous
        self.users = 0

    def __call__(self, loop: asyncio.AbstractEventLoop, coroutine: Any, **options: Any) -> Any:
        make = asyncio.Task if self.previous is None else None
        task = self.previous(loop, coroutine, **options) if make is None else make(coroutine, loop=loop, **options)
        started = run_tasks.get()
        if started is not None:
            started.add(task)
            task.add_done_callback(started.discard)
        return task
