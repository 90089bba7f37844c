"""Failures count over all processes: two workers, each with jobs of its own, behind one breaker."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

import pytest

from tests.worker.breaker_app import make
from windlass import JobFailed, Windlass

Sides = dict[str, Windlass]


@pytest.fixture
async def sides(url: str) -> AsyncIterator[Sides]:
    """Give two applications that share nothing but the database, each with a worker."""
    left, right = make(url, "left"), make(url, "right")
    at = "tests.worker.breaker_app"
    async with left, right, left.working(target=f"{at}:left"), right.working(target=f"{at}:right"):
        yield {"left": left, "right": right}


async def call(sides: Sides, task: str, side: str, *, is_up: bool = False) -> None:
    """Run one job in one of the two workers."""
    app = sides[side]
    with suppress(JobFailed):
        await app.wait(await app.enqueue(f"{task}-{side}", {"is_up": is_up}), timeout=30)


async def state(sides: Sides) -> str:
    found = await sides["left"].breakers.get("service")
    return "closed" if found is None else found.state.value


@pytest.mark.parametrize("task", ["call", "call-apart", "block", "block-in-thread"])
async def test_two_processes_that_fail_in_turn_open_it_at_the_third_failure(sides: Sides, task: str) -> None:
    seen = []
    for side in ("left", "right", "left"):
        await call(sides, task, side)
        seen.append(await state(sides))
    assert seen == ["closed", "closed", "open"]
    [event] = await sides["left"].breakers.history("service")
    assert event.reason == "failures"


@pytest.mark.parametrize("task", ["call", "block"])
async def test_a_success_in_any_process_begins_a_new_row(sides: Sides, task: str) -> None:
    for side, is_up in (("left", False), ("left", False), ("right", True), ("left", False), ("right", False)):
        await call(sides, task, side, is_up=is_up)
    assert await state(sides) == "closed"
    await call(sides, task, "left")
    assert await state(sides) == "open"


async def test_successes_write_nothing(sides: Sides) -> None:
    await asyncio.gather(*(call(sides, "call", side, is_up=True) for side in ("left", "right") for _ in range(20)))
    store = await sides["left"].store()
    assert (await store.breakers.list(), await store.breakers.count_failures("service")) == ([], 0)
