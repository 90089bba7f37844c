"""Waiting jobs gain priority, whoever and however many do it."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from tests.store.builders import a_job, a_lease, all_jobs, claim_one, end, ending, enqueue_one, recurring
from tests.support.raw import execute
from windlass.core.aging import aged
from windlass.core.job import JobState, NewJob, Slices
from windlass.errors import InvalidInput
from windlass.store import Store
from windlass.store.calls import aging
from windlass.testing import FakeClock


async def old_job(store: Store, clock: FakeClock, minutes: float, **options: Any) -> int:
    """Enqueue a job that was due so many minutes ago."""
    return await enqueue_one(store, a_job(run_at=clock.now() - timedelta(minutes=minutes), **options))


async def priority_of(store: Store, job_id: int) -> tuple[int, int]:
    job = await store.get(job_id)
    return job.priority, job.base_priority


@pytest.mark.parametrize(
    ("minutes", "base", "expected"),
    [
        (59, 0, 0),
        (60, 0, 0),
        (61, 0, 10),
        (65, 0, 20),
        (66, 0, 20),
        (61, 95, 100),
        (61, 101, 101),
        (61, -50, -40),
        (9999, 0, 100),
    ],
)
async def test_a_job_is_raised_by_how_long_it_has_been_due(
    store: Store, clock: FakeClock, *, minutes: int, base: int, expected: int
) -> None:
    job_id = await old_job(store, clock, minutes, priority=base)
    assert await store.age() == (expected != base)
    assert await priority_of(store, job_id) == (expected, base)
    assert await store.age() == 0


async def test_only_pending_jobs_are_raised(store: Store, clock: FakeClock) -> None:
    held = await old_job(store, clock, 61)
    await claim_one(store)
    scheduled = await enqueue_one(store, a_job(delay=timedelta(minutes=1)))
    clock.advance(hours=3)
    assert await store.age() == 0
    assert await priority_of(store, held) == await priority_of(store, scheduled) == (0, 0)


async def test_statements_and_formula_agree(store: Store, clock: FakeClock) -> None:
    waits = [timedelta(seconds=seconds) for seconds in range(0, 8000, 97)]
    jobs = [
        a_job(f"task-{place % 3}", lane=f"lane-{place % 2}", priority=place * 7 % 130 - 20, run_at=clock.now() - wait)
        for place, wait in enumerate(waits)
    ]
    ids = [enqueued.id for enqueued in await store.enqueue(jobs)]
    for _ in range(3):
        before = {job_id: await priority_of(store, job_id) for job_id in ids}
        await store.age(limit=7)
        for job_id, job in zip(ids, jobs, strict=True):
            assert job.run_at is not None
            expected = aged(*before[job_id], clock.now() - job.run_at)
            assert await priority_of(store, job_id) == (expected, job.priority)
        clock.advance(minutes=4)


async def test_a_paused_lane_ages_as_well(store: Store, clock: FakeClock) -> None:
    job_id = await old_job(store, clock, 61, lane="fast")
    await store.lanes.pause("fast")
    assert await store.age() == 1
    assert await priority_of(store, job_id) == (10, 0)


async def test_five_instances_at_once_give_the_same_as_one(
    stores: list[Store], clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(aging, "MAX_FOUND", 20)
    jobs = [a_job(f"task-{n % 3}", priority=n % 4, run_at=clock.now() - timedelta(minutes=n)) for n in range(150)]
    ids = [enqueued.id for enqueued in await stores[0].enqueue(jobs)]
    await asyncio.gather(*(store.age(limit=10) for store in stores))
    for place, job_id in enumerate(ids):
        expected = aged(place % 4, place % 4, timedelta(minutes=place))
        assert await priority_of(stores[0], job_id) == (expected, place % 4)


async def test_an_aged_job_goes_before_a_younger_one(store: Store, clock: FakeClock) -> None:
    old = await old_job(store, clock, 70, priority=5)
    await enqueue_one(store, a_job(priority=20))
    await store.age()
    assert (await claim_one(store)).id == old


async def test_a_finished_recurring_job_is_back_at_its_base(store: Store, clock: FakeClock) -> None:
    job_id = await old_job(store, clock, 70, recurrence=recurring(), priority=3)
    await store.age()
    held = await claim_one(store)
    assert held.priority == 33
    await end(store, clock, held)
    assert await priority_of(store, job_id) == (3, 3)


async def test_batches_meet_each_job_once(store: Store, clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aging, "MAX_FOUND", 30)
    await store.enqueue([a_job(run_at=clock.now() - timedelta(minutes=62)) for _ in range(95)])
    await store.enqueue([a_job(priority=50, run_at=clock.now() - timedelta(minutes=62)) for _ in range(5)])
    assert await store.age(limit=10) == 100
    rows = await execute(store, "select priority, count(*) from windlass_jobs group by 1 order by 1")
    assert rows == [(10, 95), (60, 5)]


async def test_a_limit_out_of_range_is_refused(store: Store, clock: FakeClock) -> None:
    await old_job(store, clock, 61)
    with pytest.raises(InvalidInput, match="limit"):
        await store.age(limit=0)


async def test_aging_beside_claims_and_finishes_ends_with_every_job_done(stores: list[Store], clock: FakeClock) -> None:
    """Nobody deadlocks, nobody loses a job, nothing runs twice."""
    jobs: list[NewJob] = [a_job(f"task-{n % 4}", run_at=clock.now() - timedelta(minutes=n % 120)) for n in range(400)]
    await stores[0].enqueue(jobs)
    done: list[int] = []

    async def work(store: Store) -> None:
        while (found := await store.slices()).open:
            taken = await store.claim(Slices(found.version, found.open), 7, a_lease())
            await store.finish([ending(job, clock.now()) for job in taken])
            done.extend(job.id for job in taken)

    async def age(store: Store) -> None:
        for _ in range(10):
            await store.age(limit=20)

    await asyncio.gather(*(work(store) for store in stores[:3]), *(age(store) for store in stores[3:]))
    assert len(done) == len(set(done)) == 400
    assert {job.state for job in await all_jobs(stores[0])} == {JobState.COMPLETED}


async def test_a_pass_goes_on_from_where_its_last_part_ended(
    store: Store, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(aging, "MAX_FOUND", 3)
    for task in ("a", "b", "c"):
        for _ in range(4):
            await old_job(store, clock, 61, task=task)
    cursor: str | None = None
    parts: list[int] = []
    while not parts or cursor is not None:
        swept = await store.age_some(cursor, at_most=3)
        cursor = swept.cursor
        parts.append(swept.rows)
    # A part may end one look late.
    assert (max(parts) < 3 + 3, sum(parts)) == (True, 12)
    assert {job.priority for job in await all_jobs(store)} == {10}
    assert await store.age_some('["gone", "long", 3]') == (0, None)
