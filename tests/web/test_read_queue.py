"""Costly reads take turns."""

from __future__ import annotations

import asyncio
from random import Random

import pytest

from windlass.web.errors import Refusal
from windlass.web.read_queue import ReadPermit, ReadQueue


def read_queue(at_once: int = 1, most_waiting: int = 10, patience_s: float = 30.0) -> ReadQueue:
    return ReadQueue(at_once, most_waiting, patience_s, Random(1))


async def waiting(made: ReadQueue, *names: str) -> list[asyncio.Task[ReadPermit]]:
    tasks = [asyncio.create_task(made.take(name), name=name) for name in names]
    await asyncio.sleep(0)
    return tasks


async def test_those_who_wait_are_served_in_turn_by_their_name() -> None:
    made, order = read_queue(), list[str]()

    def note(done: asyncio.Task[ReadPermit]) -> None:
        order.append(done.get_name())
        done.result().end()

    first = await made.take("a")
    tasks = await waiting(made, "a", "a", "a", "b", "c")
    for task in tasks:
        task.add_done_callback(note)
    first.end()
    await asyncio.wait_for(asyncio.gather(*tasks), 30)
    assert order == ["a", "b", "c", "a", "a"]
    (await made.take("d")).end()


async def test_one_too_many_is_refused_at_once_and_a_long_wait_is_refused_in_time() -> None:
    made = read_queue(most_waiting=1, patience_s=0.05)
    first = await made.take("a")
    [patient] = await waiting(made, "b")
    with pytest.raises(Refusal) as refused:
        await made.take("c")
    assert (refused.value.status, refused.value.headers["retry-after"]) == (503, "2")
    with pytest.raises(Refusal):
        await patient
    first.end()
    (await made.take("c")).end()


async def test_a_turn_that_its_taker_gave_up_goes_to_the_next() -> None:
    made = read_queue()
    first = await made.take("a")
    gone, stays = await waiting(made, "b", "c")
    gone.cancel()
    first.end()
    first.end()
    (await asyncio.wait_for(stays, 30)).end()
    (await asyncio.wait_for(made.take("d"), 30)).end()
