"""A move that had to wait for a row acts on what it then finds; PostgreSQL alone lets two writers meet there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from typing import Any

import psycopg
import pytest

from tests.store.builders import a_job, end, enqueue_one, failure, recurring, running
from windlass.core.job import JobState, Lease
from windlass.core.transitions import Moved
from windlass.store import Store
from windlass.store.calls import control, endings, work
from windlass.store.calls.call import Call
from windlass.store.postgres import Postgres, _drive_async
from windlass.testing import FakeClock

from .builders import LEASE, ending


@pytest.fixture(params=["postgres"])
def backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@asynccontextmanager
async def uncommitted(store: Store, call: Call[Any]) -> AsyncIterator[Any]:
    """Run a call in a transaction that commits when the block ends."""
    assert isinstance(store.database, Postgres)
    async with await psycopg.AsyncConnection.connect(store.database.dsn) as connection:
        yield await _drive_async(connection, call)


async def after(store: Store, first: Call[Any], second: Awaitable[Moved]) -> Moved:
    """Let `second` wait for the rows that `first` has changed."""
    async with uncommitted(store, first):
        waiting = asyncio.ensure_future(second)
        await asyncio.wait_for(someone_waits(store), 10)
    return await asyncio.wait_for(waiting, 10)


async def someone_waits(store: Store) -> None:
    assert isinstance(store.database, Postgres)
    async with await psycopg.AsyncConnection.connect(store.database.dsn, autocommit=True) as connection:
        asked = "select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
        while not await (await connection.execute(asked)).fetchall():  # noqa: ASYNC110 - the server knows, and does not say
            await asyncio.sleep(0.01)


async def test_a_retry_after_a_burial_closes_the_letter(store: Store, clock: FakeClock) -> None:
    held = await running(store)
    await end(store, clock, held, failure())
    moved = await after(store, endings.bury([held.id], "no use"), store.retry([held.id]))
    assert moved.one().state is JobState.PENDING
    [letter] = await store.list_dead_letters(held.id)
    assert letter.closed_reason == "retried"


async def test_a_stop_after_a_claim_stops_the_run(store: Store, clock: FakeClock) -> None:
    job_id = await enqueue_one(store, a_job(recurrence=recurring(), run_at=clock.now()))
    found = await store.slices()
    taking = work.claim(found, 1, Lease(1, "w", LEASE), started=True)
    moved = await after(store, taking, store.stop_run([job_id]))
    assert moved.one().stop_requested


async def test_a_pause_after_a_finish_holds_the_schedule(store: Store, clock: FakeClock) -> None:
    held = await running(store, a_job(recurrence=recurring(), run_at=clock.now()))
    finishing = work.finish([ending(held, clock.now())])
    moved = await after(store, finishing, store.pause([held.id]))
    assert moved.one().state is JobState.PAUSED


async def test_a_cancel_after_a_retry_cancels(store: Store, clock: FakeClock) -> None:
    held = await running(store, a_job(max_attempts=1))
    await end(store, clock, held, failure())
    moved = await after(store, control.retry([held.id]), store.cancel([held.id], None))
    assert moved.one().state is JobState.CANCELLED
