"""A database or a machine that is away for three leases makes nobody's work run twice."""

from __future__ import annotations

import asyncio
import signal
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from random import Random
from typing import Literal

import pytest

from tests.crash import locker, worker
from tests.crash.conftest import is_long
from tests.crash.processes import Fleet, Process, until
from tests.support.postgres_server import PostgresServer
from tests.support.stores import fresh_url
from windlass.core.blocking import run
from windlass.core.job import JobState, NewJob, RunStatus
from windlass.errors import StoreUnavailable
from windlass.store import Store, open_blocking_store, open_store
from windlass.store.doctor import check

LEASE_S = 1.0
OUTAGE_S = 3 * LEASE_S + 0.3
SLOTS = 6
WORKERS = ("left", "right")
# Some end before the outage does, some after it; those beyond the slots are claimed afterwards.
SECONDS = [0.2, 0.5, 1, 2, 4.5, 4.5] * len(WORKERS) + [0, 0.1, 0.2, 0.5]
TURNS = range(10 if is_long() else 1)


@pytest.fixture
def lent_url(own_server: PostgresServer, tmp_path: Path) -> Iterator[str]:
    """Give a database on a server that the test may stop."""
    with fresh_url("postgres", tmp_path, own_server) as made:
        yield made


@pytest.mark.parametrize("turn", TURNS)
@pytest.mark.parametrize("mode", ["fast", "immediate"])
async def test_postgres_away_for_three_leases_loses_and_repeats_nothing(
    lent_url: str, own_server: PostgresServer, tmp_path: Path, mode: Literal["fast", "immediate"], *, turn: int
) -> None:
    del turn
    fleet = Fleet(tmp_path)
    try:
        async with opened(lent_url) as store:
            ids, workers = await busy(store, lent_url, fleet)
        await asyncio.to_thread(own_server.stop, mode)
        await asyncio.sleep(OUTAGE_S)
        await asyncio.to_thread(own_server.start)
        async with opened(lent_url) as store:
            await check_once(store, ids, workers)
            assert await check(store) == []
    finally:
        fleet.close()


async def test_pools_answer_within_a_second_of_their_servers_return(lent_url: str, own_server: PostgresServer) -> None:
    """However long it was away: a pause that grows with the outage would outlast the leases that wait to be renewed."""
    async with opened(lent_url) as store:
        blocking = open_blocking_store(lent_url, rng=Random(1))
        calls: list[Callable[[], Awaitable[datetime]]] = [store.clock, lambda: asyncio.to_thread(run, blocking.clock())]
        for call in calls:
            await call()
        await asyncio.to_thread(own_server.stop, "fast")
        waiting = [asyncio.create_task(answered(call)) for call in calls]
        await asyncio.sleep(4)
        assert not any(task.done() for task in waiting)
        await asyncio.to_thread(own_server.start)
        async with asyncio.timeout(1):
            await asyncio.gather(*waiting)
        await blocking.aclose()


async def answered(call: Callable[[], Awaitable[datetime]]) -> datetime:
    while True:
        try:
            return await call()
        except StoreUnavailable:
            await asyncio.sleep(0.02)


@pytest.mark.parametrize("turn", TURNS)
async def test_machine_suspended_for_three_leases_loses_and_repeats_nothing(
    store: Store, url: str, fleet: Fleet, turn: int
) -> None:
    del turn
    ids, workers = await busy(store, url, fleet)
    for process in workers:
        process.send(signal.SIGSTOP)
    await asyncio.sleep(OUTAGE_S)
    for process in workers:
        process.send(signal.SIGCONT)
    await check_once(store, ids, workers)


@pytest.mark.parametrize("turn", TURNS)
async def test_machine_suspended_in_the_middle_of_a_reclaim_loses_and_repeats_nothing(
    store: Store, url: str, fleet: Fleet, turn: int
) -> None:
    """The reclaimer has just found itself in contact; three leases later it goes on with what it was about to do."""
    del turn
    ids, workers = await busy(store, url, fleet)
    workers[0].tell("doze")
    await workers[0].hear("dozing")
    workers[1].send(signal.SIGSTOP)
    await asyncio.sleep(OUTAGE_S)
    # The reclaimer wakes up first, as it may; its neighbour is given far less than the lease of grace that is its due.
    rounds = len(workers[0].said("round"))
    workers[0].send(signal.SIGCONT)
    await workers[0].hear("round", count=rounds + 1)
    workers[1].send(signal.SIGCONT)
    await check_once(store, ids, workers)


@pytest.mark.parametrize("turn", TURNS)
async def test_database_locked_for_three_leases_loses_and_repeats_nothing(
    store: Store, url: str, fleet: Fleet, turn: int
) -> None:
    """Reading the clock may go on all the while; no lease can be renewed."""
    del turn
    ids, workers = await busy(store, url, fleet)
    stranger = await locked(fleet, url)
    await asyncio.sleep(OUTAGE_S)
    stranger.tell("unlock")
    await check_once(store, ids, workers)


@pytest.mark.parametrize("turn", TURNS)
async def test_process_that_starts_while_the_database_is_locked_takes_nothing_from_the_living(
    store: Store, url: str, fleet: Fleet, turn: int
) -> None:
    del turn
    ids, workers = await busy(store, url, fleet)
    newcomer = fleet.start("newcomer", worker, worker.Options(url, "newcomer", LEASE_S, slots=0))
    await newcomer.hear("ready")
    stranger = await locked(fleet, url)
    await asyncio.sleep(OUTAGE_S)
    newcomer.tell("go")
    # One lease and a little later its reclaimer would trust its contact, if being able to read the time were enough.
    await asyncio.sleep(LEASE_S + 1.5 * worker.UPKEEP_S)
    stranger.tell("unlock")
    await check_once(store, ids, [*workers, newcomer])


async def locked(fleet: Fleet, url: str) -> Process:
    """Start a process that lets nobody write until it is told to `unlock`."""
    stranger = fleet.start("locker", locker, locker.Options(url))
    await fleet.go(stranger)
    await stranger.hear("locked")
    return stranger


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[Store]:
    store = open_store(url, rng=Random(1))
    try:
        yield store
    finally:
        await store.aclose()


async def busy(store: Store, url: str, fleet: Fleet) -> tuple[list[int], list[Process]]:
    """Start workers, and wait until every slot runs a job and reclaimers are entitled to act."""
    workers = [fleet.start(name, worker, worker.Options(url, name, LEASE_S, SLOTS)) for name in WORKERS]
    await fleet.go(*workers)
    # Contact of one whole lease: from here on only the outage itself can keep a reclaimer from acting.
    for process in workers:
        await process.hear("round", count=round(LEASE_S / worker.UPKEEP_S) + 2)
    jobs = [NewJob(task="work", payload=f'{{"seconds":{seconds}}}') for seconds in SECONDS]
    ids = [enqueued.id for enqueued in await store.enqueue(jobs)]
    await until(lambda: sum(len(process.said("ran")) for process in workers) >= SLOTS * len(WORKERS), "every slot to be busy")
    return ids, workers


async def check_once(store: Store, ids: list[int], workers: list[Process]) -> None:
    """Hold every job to one run, completed, by whoever first took it."""
    await until(lambda: are_completed(store, len(ids)), "every job to complete")
    told = {process.label: {word: process.said(word) for word in ("reclaimed", "lost", "refused")} for process in workers}
    ran = Counter(job_id for process in workers for job_id in process.said("ran"))
    assert ran == Counter(ids), f"run more than once: {ran - Counter(ids)}; {told}"
    for job_id in ids:
        job = await store.get(job_id)
        assert (job.attempt, job.executions, job.crashes) == (1, 1, 0), f"job {job_id} was charged for the outage; {told}"
        assert [run.status for run in await store.list_executions(job_id)] == [RunStatus.COMPLETED]


async def are_completed(store: Store, jobs: int) -> bool:
    return [(count.state, count.jobs) for count in await store.count_jobs()] == [(JobState.COMPLETED, jobs)]
