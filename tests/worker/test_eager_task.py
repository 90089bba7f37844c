from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextvars import ContextVar, copy_context
from typing import Any

import pytest

from windlass.worker.eager_task import eager_task

told: ContextVar[str] = ContextVar("told", default="nothing")


def started(work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
    return eager_task(work, asyncio.get_running_loop(), copy_context())


async def test_first_step_is_taken_at_once_in_the_task_and_its_context() -> None:
    seen: list[Any] = []

    async def work() -> None:
        seen.append(asyncio.current_task())
        told.set("inside")

    outer = asyncio.current_task()
    task = started(work())
    assert seen == [task]
    assert asyncio.current_task() is outer
    assert told.get() == "nothing"
    await task


async def test_work_that_waits_goes_on_in_the_same_task() -> None:
    seen: list[Any] = []

    async def work() -> None:
        for _ in range(3):
            seen.append(asyncio.current_task())
            await asyncio.sleep(0.001)
        async with asyncio.timeout(5):
            await asyncio.sleep(0)

    task = started(work())
    await task
    assert seen == [task] * 3


async def test_timeout_that_begins_in_the_first_step_ends_its_block_only() -> None:
    seen: list[str] = []

    async def work() -> None:
        try:
            async with asyncio.timeout(0.01):
                await asyncio.sleep(10)
        except TimeoutError:
            seen.append("timed out")
        await asyncio.sleep(0)
        seen.append("went on")

    await started(work())
    assert seen == ["timed out", "went on"]


async def at_once(task: asyncio.Task[None]) -> None:
    task.cancel()


async def in_the_next_turn(task: asyncio.Task[None]) -> None:
    await asyncio.sleep(0)
    task.cancel()


async def later(task: asyncio.Task[None]) -> None:
    await asyncio.sleep(0.01)
    task.cancel()


WHEN = [at_once, in_the_next_turn, later]


@pytest.mark.parametrize("cancel", WHEN)
async def test_cancelled_task_ends_and_so_does_what_it_waits_for(cancel: Callable[[asyncio.Task[None]], Awaitable[None]]) -> None:
    inner = asyncio.get_running_loop().create_future()

    async def work() -> None:
        await inner

    task = started(work())
    await cancel(task)
    with pytest.raises(asyncio.CancelledError):
        await task
    assert inner.cancelled()


@pytest.mark.parametrize("cancel", WHEN)
async def test_work_may_go_on_after_a_cancel(cancel: Callable[[asyncio.Task[None]], Awaitable[None]]) -> None:
    seen: list[str] = []

    async def work() -> None:
        for _ in range(2):
            try:
                await asyncio.sleep(0.05)
            except asyncio.CancelledError:
                seen.append("cancelled")
        seen.append("went on")

    task = started(work())
    await cancel(task)
    await task
    assert seen == ["cancelled", "went on"]


@pytest.mark.parametrize("cancel", WHEN)
async def test_work_that_swallows_a_cancel_and_returns_has_ended(cancel: Callable[[asyncio.Task[None]], Awaitable[None]]) -> None:
    async def work() -> None:
        try:
            await asyncio.sleep(0.05)
        except asyncio.CancelledError:
            return

    task = started(work())
    await cancel(task)
    await task


async def test_work_that_waits_for_a_turn_only_can_be_cancelled() -> None:
    async def work() -> None:
        await asyncio.sleep(0)
        await asyncio.sleep(10)

    task = started(work())
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_work_that_cancels_itself_is_cancelled_where_it_waits() -> None:
    seen: list[str] = []

    async def work() -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        seen.append("went on")
        await asyncio.sleep(0.01)
        seen.append("too far")

    with pytest.raises(asyncio.CancelledError):
        await started(work())
    assert seen == ["went on"]


@pytest.mark.parametrize("turns", [0, 1])
async def test_error_is_raised_to_who_waits_for_the_task(turns: int) -> None:
    async def work() -> None:
        for _ in range(turns):
            await asyncio.sleep(0)
        raise ValueError("no")

    task = started(work())
    with pytest.raises(ValueError, match="no"):
        await task


async def test_what_a_wait_returns_and_raises_reaches_the_work() -> None:
    seen: list[Any] = []
    good, bad = (asyncio.get_running_loop().create_future() for _ in range(2))

    async def work() -> None:
        seen.append(await good)
        try:
            await bad
        except KeyError as error:
            seen.append(type(error))

    task = started(work())
    good.set_result(7)
    bad.set_exception(KeyError("x"))
    await task
    assert seen == [7, KeyError]
