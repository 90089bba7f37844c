"""A stranger that holds the rows of running jobs for longer than a lease does not make them run twice."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from random import Random
from typing import Any

import psycopg
import pytest

from tests.crash.worker import new_lease
from windlass.core.job import Claimed, JobState, NewJob, OnConflict
from windlass.core.outcome import Returned, Run, decide
from windlass.store import SqlStore, open_store
from windlass.upkeep.reclaimer import Reclaimer

LEASE = timedelta(seconds=2)
JOBS = 10
KEYED = [NewJob(task="work", unique_key=f"k{place}", on_conflict=OnConflict.RERUN) for place in range(JOBS)]


@pytest.fixture
def backend() -> str:
    """Only PostgreSQL has row locks."""
    return "postgres"


@pytest.mark.parametrize("kind", ["rerun", "edit"])
async def test_live_jobs_are_not_taken_after_a_row_lock(store: SqlStore, url: str, kind: str) -> None:
    await store.enqueue(KEYED)
    held = await store.claim(await store.slices(), JOBS, new_lease("holder", LEASE.total_seconds()))
    async with heart(store, held) as ends, reclaims(url) as taken:
        async with await psycopg.AsyncConnection.connect(url) as stranger:
            await lock(store, stranger, kind)
            await asyncio.sleep(LEASE.total_seconds() * 1.4)
            now = await store.clock()
            assert all(end > now for end in ends.values()), "a lease that is held looks as if it had run out"
        await asyncio.sleep(LEASE.total_seconds() / 2)
    assert taken == []
    now = await store.clock()
    endings = [decide(job, Returned(), Run(job.claimed_at, now), now=now, rng=Random(1)) for job in held]
    assert len(await store.finish(endings)) == JOBS


async def test_a_lease_that_nobody_vouches_for_is_taken_once_its_row_is_free(store: SqlStore, url: str) -> None:
    """A live worker that never heard of its claim cannot vouch for it."""
    await store.enqueue(KEYED)
    held = await store.claim(await store.slices(), JOBS, new_lease("holder", LEASE.total_seconds()))
    async with heart(store, held[1:]), reclaims(url) as taken:
        async with await psycopg.AsyncConnection.connect(url) as stranger:
            await lock(store, stranger, "edit")
            await asyncio.sleep(LEASE.total_seconds() * 1.2)
        async with asyncio.timeout(30):
            while not taken:  # noqa: ASYNC110 - another store takes it
                await asyncio.sleep(0.05)
    assert taken == [held[0].id]
    assert (await store.get(held[0].id)).state is JobState.SCHEDULED


async def test_whoever_is_first_of_holder_and_reclaimer_wins(store: SqlStore, url: str) -> None:
    await store.enqueue(KEYED)
    job, other, *_ = await store.claim(await store.slices(), JOBS, new_lease("holder", 60))
    later = job.lease_expires_at + timedelta(seconds=1)
    async with await psycopg.AsyncConnection.connect(url) as stranger:
        await stranger.execute("select 1 from windlass_jobs where id = %s for update", [job.id])
        [vouched] = await store.renew([(job.id, job.token, None)], LEASE, later)
        assert vouched.lease_expires_at == later + LEASE
    assert job.id not in await store.reclaim(now=later)
    assert job.id in await store.reclaim(now=later + LEASE)
    assert other.id not in [held.id for held in await store.renew([(other.id, other.token, None)], LEASE, later)]


async def lock(store: SqlStore, stranger: psycopg.AsyncConnection[Any], kind: str) -> None:
    if kind == "rerun":
        await store.enqueue_on(stranger, KEYED)
    else:
        await stranger.execute("update windlass_jobs set priority = 7")


@asynccontextmanager
async def heart(store: SqlStore, jobs: list[Claimed]) -> AsyncIterator[dict[int, Any]]:
    """Renew as a worker does; gives the end of each lease as the worker knows it."""
    ends: dict[int, Any] = {}

    async def beat() -> None:
        while True:
            held = await store.renew([(job.id, job.token, None) for job in jobs], LEASE)
            ends.update((one.id, one.lease_expires_at) for one in held)
            await asyncio.sleep(LEASE.total_seconds() / 4)

    async with asyncio.TaskGroup() as group:
        beating = group.create_task(beat())
        yield ends
        beating.cancel()


@asynccontextmanager
async def reclaims(url: str) -> AsyncIterator[list[int]]:
    """Reclaim as other processes do, in steady contact; gives what was taken."""
    store = open_store(url, rng=Random(2))
    taken: list[int] = []

    async def reclaim() -> None:
        reclaimer = Reclaimer(store, lease=LEASE / 2)
        while True:
            taken.extend(await reclaimer.round())
            await asyncio.sleep(LEASE.total_seconds() / 8)

    async with asyncio.TaskGroup() as group:
        reclaiming = group.create_task(reclaim())
        yield taken
        reclaiming.cancel()
    await store.aclose()
