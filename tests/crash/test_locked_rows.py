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

from tests.crash.processes import until
from tests.crash.worker import new_lease
from tests.support.stores import at_time
from windlass.core.job import Claimed, JobState, NewJob, OnConflict, UniqueScope
from windlass.core.outcome import Returned, Run, Snoozed, decide
from windlass.errors import RowsLocked
from windlass.store import Store, open_store
from windlass.upkeep.reclaimer import Reclaimer
from windlass.worker.acker import Acker

LEASE = timedelta(seconds=2)
JOBS = 10
KEYED = [NewJob(task="work", unique_key=f"k{place}", on_conflict=OnConflict.RERUN) for place in range(JOBS)]


@pytest.fixture
def backend() -> str:
    """Only PostgreSQL has row locks."""
    return "postgres"


@pytest.mark.parametrize("kind", ["rerun", "edit"])
async def test_live_jobs_are_not_taken_after_a_row_lock(store: Store, url: str, kind: str) -> None:
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


async def test_a_lease_that_nobody_vouches_for_is_taken_once_its_row_is_free(store: Store, url: str) -> None:
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


async def test_whoever_is_first_of_holder_and_reclaimer_wins(store: Store, url: str) -> None:
    await store.enqueue(KEYED)
    job, other, *_ = await store.claim(await store.slices(), JOBS, new_lease("holder", 60))
    later = job.lease_expires_at + timedelta(seconds=1)
    async with await psycopg.AsyncConnection.connect(url) as stranger:
        await stranger.execute("select 1 from windlass_jobs where id = %s for update", [job.id])
        [vouched] = await at_time(store, later).renew([(job.id, job.token, None)], LEASE)
        assert vouched.lease_expires_at == later + LEASE
    assert job.id not in await at_time(store, later).reclaim()
    assert job.id in await at_time(store, later + LEASE).reclaim()
    assert other.id not in [held.id for held in await at_time(store, later).renew([(other.id, other.token, None)], LEASE)]


async def lock(store: Store, stranger: psycopg.AsyncConnection[Any], kind: str) -> None:
    if kind == "rerun":
        await store.enqueue_on(stranger, KEYED)
    else:
        await stranger.execute("update windlass_jobs set priority = 7")


@asynccontextmanager
async def heart(store: Store, jobs: list[Claimed]) -> AsyncIterator[dict[int, Any]]:
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


@pytest.mark.parametrize("kind", ["row", "key"])
async def test_a_finish_waits_only_a_moment_for_what_a_stranger_holds(store: Store, url: str, kind: str) -> None:
    keyed = NewJob(task="work", unique_key="k", unique_scope=UniqueScope.PENDING)
    await store.enqueue([keyed, *[NewJob(task="work") for _ in range(200)]])
    held = await store.claim(await store.slices(), 201, new_lease("holder", 60))
    now = await store.clock()
    outcomes = [Snoozed(timedelta(0)) if job.id == held[0].id else Returned() for job in held]
    endings = [
        decide(job, outcome, Run(job.claimed_at, now), now=now, rng=Random(1))
        for job, outcome in zip(held, outcomes, strict=True)
    ]
    told: dict[int, JobState] = {}
    acker = Acker(store, rng=Random(1), is_busy=lambda: False, accepted=lambda _, accepted: told.update(accepted))
    async with asyncio.TaskGroup() as group:
        acking = group.create_task(acker.run())
        async with await psycopg.AsyncConnection.connect(url) as stranger:
            if kind == "row":
                await stranger.execute("select 1 from windlass_jobs where id = %s for update", [held[0].id])
            else:
                await store.enqueue_on(stranger, [keyed])
            began = asyncio.get_running_loop().time()
            for ending in endings:
                acker.add(ending)
            await until(lambda: len(told) == 200, "the others to be recorded")
            assert asyncio.get_running_loop().time() - began < 2
            assert acker.waiting == 1
            acker.add_stop((held[1].id, 7, Run()))
            await until(lambda: acker.waiting == 1, "a later report to be sent", within=5)
            await stranger.rollback()
        async with asyncio.timeout(30):
            await acker.drain()
        acking.cancel()
    assert told[held[0].id] is JobState.SCHEDULED


async def test_reports_about_one_row_never_hang(store: Store, url: str) -> None:
    await store.enqueue([NewJob(task="work") for _ in range(3)])
    job, other, running = await store.claim(await store.slices(), 3, new_lease("holder", 60))
    await store.cancel([job.id, other.id])
    async with await psycopg.AsyncConnection.connect(url) as stranger, asyncio.timeout(20):
        await stranger.execute("select 1 from windlass_jobs where id <> %s for update", [other.id])
        with pytest.raises(RowsLocked) as told:
            await store.stop([(one.id, one.token, Run()) for one in (job, other)])
        assert (list(told.value.ids), list(told.value.accepted)) == ([job.id], [other.id])
        with pytest.raises(RowsLocked):
            await store.progress(running.id, running.token, count=1)


async def test_a_lost_lease_whose_key_a_stranger_holds_does_not_keep_the_others(store: Store, url: str) -> None:
    keyed = NewJob(task="work", unique_key="k", unique_scope=UniqueScope.PENDING)
    await store.enqueue([keyed, NewJob(task="work")])
    _, other = await store.claim(await store.slices(), 2, new_lease("holder", 60))
    async with await psycopg.AsyncConnection.connect(url) as stranger, asyncio.timeout(20):
        await store.enqueue_on(stranger, [keyed])
        assert await at_time(store, other.lease_expires_at).reclaim() == [other.id]
