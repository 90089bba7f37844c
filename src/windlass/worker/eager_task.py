"""Starts an asyncio task at once, not in the event loop's next turn."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Coroutine, Generator
from contextvars import Context
from typing import Any

if sys.version_info >= (3, 12):

    def eager_task(work: Coroutine[Any, Any, None], loop: asyncio.AbstractEventLoop, context: Context) -> asyncio.Task[None]:
        """Start a task; it may have ended when this returns."""
        # Made by hand: a loop's own factory may belong to the application.
        return asyncio.Task(work, loop=loop, context=context, eager_start=True)

else:

    def eager_task(work: Coroutine[Any, Any, None], loop: asyncio.AbstractEventLoop, context: Context) -> asyncio.Task[None]:
        """Start a task; its work may have ended when this returns, the task itself ends in the loop's next turn."""
        steps = _first_step_ahead(work)
        task: asyncio.Task[None] = asyncio.Task(steps, loop=loop, context=context)
        outer = asyncio.current_task(loop)
        # asyncio's own functions for those who bring their own tasks.
        if outer is not None:
            asyncio._leave_task(loop, outer)  # noqa: SLF001
        asyncio._enter_task(loop, task)  # noqa: SLF001
        try:
            context.run(next, steps)
        finally:
            asyncio._leave_task(loop, task)  # noqa: SLF001
            if outer is not None:
                asyncio._enter_task(loop, outer)  # noqa: SLF001
        return task


def _first_step_ahead(work: Coroutine[Any, Any, None]) -> Generator[Any, Any, None]:
    """Take the first step of `work` when asked for the first time, and report it when the task asks."""
    try:
        waits_for = work.send(None)
    except StopIteration:
        yield
        return
    except BaseException:
        yield
        raise
    try:
        yield
    except asyncio.CancelledError as error:
        # Cancelled before the task asked: what it waits for is cancelled, as if the task had asked for it.
        if not (asyncio.isfuture(waits_for) and waits_for.cancel()):
            yield from _thrown(work, error)
            return
    try:
        yield waits_for
    except BaseException as error:  # noqa: BLE001 - what is raised in the task is raised in its work
        yield from _thrown(work, error)
    else:
        yield from work.__await__()


def _thrown(work: Coroutine[Any, Any, None], error: BaseException) -> Generator[Any, Any, None]:
    """Go on with `work` from an error."""
    while True:
        try:
            waits_for = work.throw(error)
        except StopIteration:
            return
        try:
            yield waits_for
        except BaseException as another:  # noqa: BLE001 - as above
            error = another
        else:
            yield from work.__await__()
            return
