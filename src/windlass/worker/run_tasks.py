"""Keeps account of the asyncio tasks that handlers start, so that none outlives its run."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from windlass.core.current import current_run, run_tasks
from windlass.worker.worker_log import log

_MOST_NAMED = 5


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


def end_tasks(started: set[asyncio.Task[Any]]) -> None:
    """Cancel what a handler that has come back left running: it would work on under a lease that is gone."""
    left = [task for task in started if not task.done()]
    if not left:
        return
    for task in left:
        task.cancel()
    names = ", ".join(sorted(task.get_name() for task in left)[:_MOST_NAMED])
    log.warning(
        "the handler has come back and left %d tasks running, which are cancelled: %s; start what is to outlive a run in "
        "`with windlass.detached():`",
        len(left),
        names,
    )


def has_started(started: set[asyncio.Task[Any]], task: asyncio.Task[Any]) -> bool:
    """Whether a task is one of those that a run has started; from any thread."""
    if task in started:
        return True
    # An eager task takes its first step before the factory has it, but it has the run's context already.
    if sys.version_info >= (3, 12):
        run = task.get_context().get(current_run)
        return run is not None and run.tasks is started
    return False


class _TrackingFactory:
    """Makes tasks as the loop did before, and hands each to the run whose handler asked for it."""

    def __init__(self, previous: Any) -> None:
        self.previous = previous
        self.users = 0

    def __call__(self, loop: asyncio.AbstractEventLoop, coroutine: Any, **options: Any) -> Any:
        if self.previous is None:
            task = asyncio.Task(coroutine, loop=loop, **options)
        else:
            task = self.previous(loop, coroutine, **options)
        started = run_tasks()
        if started is not None:
            started.add(task)
            task.add_done_callback(started.discard)
        return task
