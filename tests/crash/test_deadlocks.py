"""Bulk verbs that meet the same jobs in different order never lock each other out."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from random import Random

import psycopg
import pytest

from windlass.core.cadence import Every, Recurrence
from windlass.core.job import Enqueued, NewJob, OnConflict
from windlass.core.transitions import Moved
from windlass.store import Store, open_store

KEYS = 60
ROUNDS = 10
RIVALS = 4
Act = Callable[[Store, list[int]], Awaitable[list[Enqueued] | Moved]]


@pytest.fixture
def backend() -> str:
    """Only PostgreSQL has row locks."""
    return "postgres"


def keyed(place: int, on_conflict: OnConflict) -> NewJob:
    rule = Recurrence(cadence=Every(timedelta(hours=1)))
    return NewJob(task="work", unique_key=f"k{place}", on_conflict=on_conflict, recurrence=rule)


async def replace(store: Store, places: list[int]) -> list[Enqueued]:
    return await store.enqueue([keyed(place, OnConflict.REPLACE) for place in places])


async def pause_and_resume(store: Store, places: list[int]) -> Moved:
    await store.pause([place + 1 for place in places])
    return await store.resume([place + 1 for place in places])


@pytest.mark.parametrize("act", [replace, pause_and_resume])
async def test_bulk_verbs_take_their_locks_in_one_order(store: Store, url: str, act: Act) -> None:
    await store.enqueue([keyed(place, OnConflict.IGNORE) for place in range(KEYS)])
    before = deadlocks(url)
    rivals = [open_store(url, rng=Random(seed)) for seed in range(RIVALS)]

    async def race(rival: Store, rng: Random) -> None:
        for _ in range(ROUNDS):
            await act(rival, rng.sample(range(KEYS), KEYS))

    await asyncio.gather(*(race(rival, Random(seed)) for seed, rival in enumerate(rivals)))
    for rival in rivals:
        await rival.aclose()
    assert deadlocks(url) == before


def deadlocks(url: str) -> int:
    """Ask the server, which counts them: a call that was chosen as the victim is tried again and says nothing."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("select pg_stat_force_next_flush()")
        query = "select deadlocks from pg_stat_database where datname = current_database()"
        [[found]] = connection.execute(query).fetchall()
    return int(found)
