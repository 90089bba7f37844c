"""Claim: in order, only what is open, never twice."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from tests.store.builders import LEASE, a_job, a_lease, claim, claim_one, claim_suspect, due, end, enqueue_one, running
from tests.support.raw import execute
from windlass.core.filter import JobFilter, StateFilter
from windlass.core.job import JobState, RunReason
from windlass.core.outcome import Failure, Outcome, Raised, Released, Snoozed
from windlass.core.page import JobQuery, Sort
from windlass.store import Store
from windlass.testing import FakeClock


async def test_a_claim_takes_ownership(store: Store, clock: FakeClock) -> None:
    await enqueue_one(store, a_job(payload='{"n":1}'))
    held = await claim_one(store, worker="anna")
    job = await store.get(held.id)
    assert (job.state, job.token, job.worker) == (JobState.RUNNING, held.token, "anna")
    assert (job.attempt, job.executions, job.started_at) == (1, 1, clock.now())
    assert job.lease_expires_at == held.lease_expires_at == clock.now() + LEASE
    assert held.payload == '{"n":1}'


async def test_the_order_is_priority_then_due_time_then_number(store: Store, clock: FakeClock) -> None:
    late = clock.now()
    early = late - timedelta(minutes=1)
    jobs = [
        a_job("a", run_at=late),
        a_job("b", priority=5, run_at=late, lane="fast"),
        a_job("c", run_at=early),
        a_job("a", run_at=late),
    ]
    low, high, older, twin = [await enqueue_one(store, job) for job in jobs]
    assert [job.id for job in await claim(store)] == [high, older, low, twin]


async def test_slices_are_read_in_the_order_of_their_heads(store: Store) -> None:
    for lane, task, priority in (("x", "a", 0), ("x", "b", 3), ("y", "a", 9), ("y", "c", 0)):
        await enqueue_one(store, a_job(task, lane=lane, priority=priority))
    found = await store.slices()
    assert [(part.lane, part.task) for part in found.open][:2] == [("y", "a"), ("x", "b")]
    assert len(found.open) == 4


async def test_a_claim_takes_only_from_the_slices_it_names(store: Store) -> None:
    await enqueue_one(store, a_job("mine"))
    await enqueue_one(store, a_job("theirs", priority=100))
    found = await store.slices()
    mine = found._replace(open=tuple(part for part in found.open if part.task == "mine"))
    assert [job.task for job in await store.claim(mine, 10, a_lease())] == ["mine"]


async def test_a_claim_begins_where_its_slices_begin_and_the_next_look_finds_what_came_before(
    store: Store, clock: FakeClock
) -> None:
    now = clock.now()
    first = await enqueue_one(store, a_job(run_at=now))
    found = await store.slices()
    urgent = await enqueue_one(store, a_job(priority=1, run_at=now))
    older = await enqueue_one(store, a_job(run_at=now - timedelta(minutes=1)))
    later = await enqueue_one(store, a_job(run_at=now))
    lesser = await enqueue_one(store, a_job(priority=-1, run_at=now - timedelta(minutes=1)))
    assert [job.id for job in await store.claim(found, 10, a_lease())] == [first, later, lesser]
    assert [job.id for job in await store.claim(await store.slices(), 10, a_lease())] == [urgent, older]


async def test_slices_go_on_behind_what_was_claimed(store: Store, clock: FakeClock) -> None:
    now = clock.now()
    jobs = [a_job(priority=priority, run_at=now - timedelta(minutes=ago)) for priority in (5, -(2**31)) for ago in (3, 2, 1)]
    numbers = [await enqueue_one(store, job) for job in jobs]
    found = await store.slices()
    claimed = await store.claim(found, 2, a_lease())
    left = found.behind(claimed)
    assert [(part.priority, part.run_at) for part in left.open] == [(5, now - timedelta(minutes=2))]
    # A job of a lower priority moves nothing: whatever else comes with the higher one goes first.
    claimed += await store.claim(left, 2, a_lease())
    assert left.behind(claimed).open == (left.open[0]._replace(run_at=now - timedelta(minutes=1)),)
    claimed += await store.claim(left.behind(claimed), 10, a_lease())
    assert [job.id for job in claimed] == numbers


async def test_more_slices_than_arms_are_served_by_their_heads(store: Store) -> None:
    await store.enqueue([a_job(f"task-{place}", priority=place) for place in range(70)])
    got = await claim(store, 100)
    assert [job.task for job in got] == [f"task-{place}" for place in range(69, 5, -1)]
    assert len(await claim(store, 100)) == 6


async def test_a_job_that_is_not_due_is_not_claimed(store: Store, clock: FakeClock) -> None:
    await enqueue_one(store, a_job(delay=timedelta(seconds=10)))
    assert await claim(store) == []
    clock.advance(seconds=10)
    assert await claim(store) == []
    await due(store)
    assert len(await claim(store)) == 1


async def test_a_paused_lane_or_task_is_not_open(store: Store) -> None:
    await enqueue_one(store, a_job("a", lane="fast"))
    await enqueue_one(store, a_job("b"))
    seen_before = await store.slices()
    await _close_gates(store)
    assert (await store.slices()).open == ()
    assert await store.claim(seen_before, 10, a_lease()) == []


async def _close_gates(store: Store) -> None:
    at = 1 if store.database.dialect == "sqlite" else "now()"
    await execute(store, f"insert into windlass_lanes (name, paused_at, updated_at) values ('fast', {at}, {at})")
    await execute(
        store,
        f"insert into windlass_tasks (name, lane, paused_at, first_seen_at, seen_at) values ('b', 'default', {at}, {at}, {at})",
    )
    await execute(store, "update windlass_gates set version = version + 1")


async def test_rivals_never_get_the_same_job(store: Store) -> None:
    await store.enqueue([a_job(f"task-{place % 5}") for place in range(200)])
    found = await store.slices()
    parts = await asyncio.gather(*(store.claim(found, 30, a_lease()) for _ in range(10)))
    ids = [job.id for part in parts for job in part]
    assert len(ids) == len(set(ids)) == 200


async def test_a_prefetched_job_has_not_started(store: Store) -> None:
    held = await running(store, started=False)
    assert (await store.get(held.id)).started_at is None


async def suspects(store: Store, clock: FakeClock, count: int, **options: Any) -> list[int]:
    """Let jobs be lost with their worker, and wait again as suspects."""
    await store.enqueue([a_job(**options) for _ in range(count)])
    lost = await claim(store, count, started=False)
    clock.advance(seconds=31)
    while await store.reclaim():
        pass
    while (await store.promote()).jobs:
        pass
    return [job.id for job in lost]


async def test_a_suspect_is_left_to_its_own_claim_and_charged(store: Store, clock: FakeClock) -> None:
    [suspect] = await suspects(store, clock, 1, priority=9)
    assert (await store.get(suspect)).crashes == 1
    others = [await enqueue_one(store) for _ in range(3)]
    assert [job.id for job in await claim(store, started=False)] == others
    taken = await claim_suspect(store)
    assert taken is not None
    assert (taken.id, taken.crashes) == (suspect, 1)
    assert (await store.get(suspect)).started_at == clock.now()
    assert await claim_suspect(store) is None


async def test_suspects_come_in_the_order_of_all_jobs(store: Store, clock: FakeClock) -> None:
    first, second = await suspects(store, clock, 2, task="a")
    [urgent] = await suspects(store, clock, 1, task="b", priority=1)
    found = await store.slices()
    assert found.open == ()
    assert [part.task for part in found.suspects] == ["b", "a"]
    taken = [*await store.claim_suspects(found, 1, a_lease()), *await store.claim_suspects(found, 5, a_lease())]
    assert [job.id for job in taken] == [urgent, first, second]


async def test_what_had_begun_runs_again_before_what_was_only_fetched(store: Store, clock: FakeClock) -> None:
    await store.enqueue([a_job() for _ in range(5)])
    clock.advance(seconds=1)
    begun = [job.id for job in await claim(store, 2)]
    fetched = [job.id for job in await claim(store, 3, started=False)]
    clock.advance(seconds=31)
    assert sorted(await store.reclaim()) == [*begun, *fetched]
    await store.promote()
    taken = await store.claim_suspects(await store.slices(), 5, a_lease())
    assert [job.id for job in taken] == [*begun, *fetched]


async def test_a_gate_holds_suspects_back(store: Store, clock: FakeClock) -> None:
    await suspects(store, clock, 1, task="a", lane="slow")
    found = await store.slices()
    await store.lanes.pause("slow")
    assert await store.claim_suspects(found, 1, a_lease()) == []
    assert (await store.slices()).suspects == ()


async def test_a_thousand_suspects_at_the_head_hold_up_nobody(store: Store, clock: FakeClock) -> None:
    await suspects(store, clock, 1000, priority=9)
    await store.enqueue([a_job() for _ in range(200)])
    found = await store.slices()
    assert [(part.lane, part.task, part.priority) for part in found.open] == [("default", "work", 0)]
    assert len(await store.claim(found, 200, a_lease())) == 200


async def test_every_other_reader_of_the_queue_sees_suspects(store: Store, clock: FakeClock) -> None:
    [suspect] = await suspects(store, clock, 1, priority=3)
    waited = await store.get(suspect)
    query = JobQuery(filter=JobFilter(states=(StateFilter(JobState.PENDING),)), sort=Sort.PRIORITY)
    assert [job.id for job in (await store.list_jobs(query)).jobs] == [suspect]
    assert (await store.insights.queue()).oldest_pending_at == waited.run_at
    assert (await store.insights.priorities()).jobs == {3: 1}
    clock.advance(hours=2)
    assert await store.age() == 1
    assert (await store.get(suspect)).priority > 100 // 2


async def test_a_job_that_ends_in_order_is_trusted_again(store: Store, clock: FakeClock) -> None:
    await suspects(store, clock, 1, max_attempts=9)
    again = await claim_suspect(store)
    assert again is not None
    await end(store, clock, again, Snoozed(timedelta(0)))
    assert (await store.get(again.id)).crashes == 0


@pytest.mark.parametrize(
    "outcome", [Released(has_started=True), Raised(Failure("gone", "WorkerCrashed", reason=RunReason.WORKER_CRASHED))]
)
async def test_a_suspect_that_did_not_end_in_order_stays_one(store: Store, clock: FakeClock, outcome: Outcome) -> None:
    [suspect] = await suspects(store, clock, 1, max_attempts=9)
    again = await claim_suspect(store)
    assert again is not None
    await end(store, clock, again, outcome)
    assert (await store.get(suspect)).crashes == 1


async def test_release_of_an_unstarted_job_gives_everything_back(store: Store, clock: FakeClock) -> None:
    held = await running(store, started=False)
    await end(store, clock, held, Released())
    job = await store.get(held.id)
    assert (job.attempt, job.executions, job.run_at) == (0, 0, held.run_at)
    assert await store.list_executions(held.id) == []
