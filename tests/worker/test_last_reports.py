"""A worker that is told to stop while nobody can write sends its reports when that is over."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from random import Random
from threading import Event

from tests.support.stores import hold_writes
from tests.worker.rig import Rig
from windlass.core.job import JobState
from windlass.store import open_database

GRACE = timedelta(seconds=10)
LEASE = timedelta(seconds=30)


@asynccontextmanager
async def locked(url: str) -> AsyncIterator[Event]:
    """Keep everybody from writing, until the event is set or the block ends."""
    database = open_database(url, rng=Random())
    is_locked, released = Event(), Event()
    holding = asyncio.get_running_loop().run_in_executor(None, hold_writes, database, is_locked.set, released)
    await asyncio.to_thread(is_locked.wait)
    try:
        yield released
    finally:
        released.set()
        await holding
        database.close()


async def start(rig: Rig) -> tuple[int, asyncio.Event]:
    """Start a job that waits to be let go."""
    go_on = asyncio.Event()

    async def waits() -> None:
        await go_on.wait()

    rig.task(waits)
    job_id = await rig.enqueue("waits")
    await rig.start(grace=GRACE, lease=LEASE)
    await rig.ended(job_id, JobState.RUNNING)
    return job_id, go_on


async def test_reports_have_what_is_left_of_the_grace(rig: Rig) -> None:
    job_id, go_on = await start(rig)
    async with locked(rig.url) as released:
        go_on.set()
        await asyncio.sleep(0.1)
        stopping = asyncio.create_task(rig.stop())
        await asyncio.sleep(3.5)
        released.set()
        await stopping
    job = await rig.store.get(job_id)
    assert (job.state, job.executions) == (JobState.COMPLETED, 1)


async def test_a_worker_in_a_hurry_does_not_wait_for_reports(rig: Rig) -> None:
    _, go_on = await start(rig)
    [(worker, running, _)] = rig.workers
    async with locked(rig.url):
        go_on.set()
        await asyncio.sleep(0.1)
        worker.stop()
        await asyncio.sleep(0.5)
        began = time.monotonic()
        worker.hurry()
        async with asyncio.timeout(9):
            await running
        assert time.monotonic() - began < 4
