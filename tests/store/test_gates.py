"""Lanes and tasks are paused, resumed and drained."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import psycopg
import pytest

from tests.store.builders import a_job, a_lease, claim, end, enqueue_one, fail_for_good, running
from windlass.core.audit import Actor
from windlass.core.gate import Gate
from windlass.core.job import JobState, Slices
from windlass.core.outcome import Run
from windlass.errors import InvalidInput
from windlass.store import Store, gates
from windlass.store.calls import work
from windlass.store.calls.gates import list_writers
from windlass.store.postgres import Postgres, _drive_async
from windlass.testing import FakeClock

ADA = Actor("ada")


async def test_a_paused_lane_is_not_claimed_from(store: Store) -> None:
    await enqueue_one(store, a_job(lane="fast"))
    other = await enqueue_one(store, a_job(lane="slow"))
    assert await store.acting(ADA).lanes.pause("fast") == ("fast", True, "ada", True)
    assert [job.id for job in await claim(store)] == [other]
    assert await store.lanes.resume("fast") == ("fast", False, None, True)
    assert len(await claim(store)) == 1


async def test_a_paused_task_is_not_claimed_from(store: Store) -> None:
    await enqueue_one(store, a_job("mail"))
    other = await enqueue_one(store, a_job("work"))
    await store.tasks.pause("mail")
    assert [job.id for job in await claim(store)] == [other]
    await store.tasks.resume("mail")
    assert len(await claim(store)) == 1


async def test_a_claim_from_older_slices_takes_nothing(store: Store) -> None:
    await enqueue_one(store)
    moves: list[Callable[[str], Awaitable[Gate]]] = [
        store.lanes.pause,
        store.lanes.resume,
        store.tasks.pause,
        store.tasks.resume,
    ]
    for move in moves:
        old = await store.slices()
        await move("other")
        assert await store.claim(old, 1, a_lease()) == []
    assert len(await claim(store)) == 1


async def test_who_paused_first_stays_named_and_the_gates_move_once(store: Store) -> None:
    await store.acting(ADA).lanes.pause("fast")
    version = (await store.slices()).version
    assert await store.acting(Actor("bob")).lanes.pause("fast") == ("fast", True, "ada", False)
    assert (await store.slices()).version == version
    assert await store.lanes.resume("never") == ("never", False, None, False)


async def test_a_pause_is_audited(store: Store) -> None:
    await store.acting(ADA).lanes.pause("fast")
    await store.acting(ADA).tasks.resume("mail")
    lines = [(line.principal, line.action, line.target) for line in await store.audit.list()]
    assert lines == [("ada", "resume task", "task:mail"), ("ada", "pause lane", "lane:fast")]


async def test_lanes_are_listed_with_their_counts(store: Store, clock: FakeClock) -> None:
    await fail_for_good(store, clock, a_job(lane="fast", max_attempts=1))
    await enqueue_one(store, a_job("other", lane="fast"))
    await enqueue_one(store, a_job(lane="fast"))
    await store.fold_counts()
    await enqueue_one(store, a_job(lane="fast"))
    await store.acting(ADA).lanes.pause("empty")
    lanes = {lane.name: lane for lane in await store.lanes.list()}
    assert lanes["fast"].counts == {JobState.PENDING: 3, JobState.FAILED: 1}
    assert (lanes["empty"].paused_at, lanes["empty"].paused_by, lanes["empty"].counts) == (clock.now(), "ada", {})


async def test_a_drain_counts_runs_and_cancelled_ones_that_have_not_stopped(store: Store, clock: FakeClock) -> None:
    first = await running(store, a_job(lane="fast"))
    second = await running(store, a_job(lane="fast"))
    await running(store, a_job("other"))
    await store.cancel([second.id])
    assert await store.lanes.drain("fast") == ("fast", 2, True)
    assert await store.tasks.running_in("other") == 1
    await end(store, clock, first)
    await store.stop([(second.id, second.token, Run())])
    drained = await store.lanes.drain("fast")
    assert drained.is_done
    assert await store.lanes.running_in("fast") == 0
    assert await store.tasks.drain("other") == ("other", 1, True)


async def test_bad_names_are_refused(store: Store) -> None:
    for call in (store.lanes.pause, store.tasks.resume, store.lanes.drain):
        with pytest.raises(InvalidInput):
            await call("")


async def _take_from(store: Store, lane: str) -> int:
    seen = await store.slices()
    mine = Slices(seen.version, tuple(part for part in seen.open if part.lane == lane))
    taken = 0
    while got := await store.claim(mine, 3, a_lease()):
        taken += len(got)
    return taken


async def test_after_a_drain_nothing_more_starts(stores: list[Store]) -> None:
    """Claimers race with the pause; what the drain counted is all there will ever be."""
    store, *claimers = stores
    for lane in range(8):
        name = f"lane-{lane}"
        await store.enqueue([a_job(lane=name) for _ in range(200)])
        racing = asyncio.gather(*(_take_from(rival, name) for rival in claimers))
        await asyncio.sleep(0.001 * lane)
        drain = await store.lanes.drain(name)
        taken = sum(await racing)
        assert drain == (name, taken, True)
        assert await store.lanes.running_in(name) == taken


async def _until(ask: Callable[[], Awaitable[bool]]) -> None:
    for _ in range(10_000):
        if await ask():
            return
        await asyncio.sleep(0)
    raise AssertionError


async def _is_paused(store: Store) -> bool:
    return any(lane.paused_at for lane in await store.lanes.list())


async def _has_writers(store: Store) -> bool:
    writers = await store.run(list_writers())
    return bool(writers)


async def _claim_held_open(connection: psycopg.AsyncConnection[Any], slices: Slices) -> int:
    call = work.claim(slices, 10, a_lease(), started=True)
    taken = await _drive_async(connection, call)
    return len(taken)


@pytest.mark.parametrize("backend", ["postgres"], indirect=True)
async def test_a_claim_under_way_during_the_pause_is_seen(store: Store) -> None:
    assert isinstance(store.database, Postgres)
    await enqueue_one(store)
    slices = await store.slices()
    async with await psycopg.AsyncConnection.connect(store.database.dsn) as connection:
        assert await _claim_held_open(connection, slices) == 1
        draining = asyncio.create_task(store.lanes.drain("default"))
        # The pause has committed and the count alone would say that nothing runs.
        await _until(lambda: _is_paused(store))
        assert await store.lanes.running_in("default") == 0
        assert not draining.done()
        await connection.commit()
        assert await draining == ("default", 1, True)


@pytest.mark.parametrize("backend", ["postgres"], indirect=True)
async def test_a_claim_whose_snapshot_is_older_than_the_pause_is_waited_for(store: Store) -> None:
    """The claim has its lock on the table and its snapshot, and sleeps before it takes the row."""
    assert isinstance(store.database, Postgres)
    await enqueue_one(store)
    slow = """
        update windlass_jobs j set state = 'running', wait_reason = null, attempt = 1, executions = 1, token = 1, worker = 'w',
            claimed_at = now(), started_at = now(), lease_expires_at = now() + interval '1 hour'
        where (select version from windlass_gates) = %s and (select pg_sleep(0.4)) is not null and j.state = 'pending'
    """
    version = (await store.slices()).version
    async with await psycopg.AsyncConnection.connect(store.database.dsn, autocommit=True) as connection:
        claiming = asyncio.create_task(connection.execute(slow, [version]))
        await _until(lambda: _has_writers(store))
        drain = await store.lanes.drain("default")
        taken = (await claiming).rowcount
    assert drain == ("default", taken, True)


@pytest.mark.parametrize("backend", ["postgres"], indirect=True)
async def test_a_writer_that_stays_leaves_the_drain_unsettled(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(store.database, Postgres)
    monkeypatch.setattr(gates, "_LOOKS", 3)
    async with await psycopg.AsyncConnection.connect(store.database.dsn) as connection:
        await connection.execute("update windlass_jobs set lane = lane where false")
        drain = await store.lanes.drain("default")
        assert (drain.running, drain.is_settled, drain.is_done) == (0, False, False)
        await connection.rollback()
    assert (await store.lanes.drain("default")).is_done
