"""Promote, spawn and counts: what the clock and the database do by themselves."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import Any

import pytest

from tests.store.builders import a_job, all_jobs, claim, due, end, enqueue_one, failure, recurring, running
from tests.support.raw import execute
from windlass.core.cadence import ByHandler, Cron, Every, Recurrence
from windlass.core.job import JobState, NewJob, Promoted, WaitReason
from windlass.errors import InvalidInput
from windlass.store import Store
from windlass.store.calls import recurrence, templates
from windlass.testing import FakeClock


async def test_promote_makes_due_jobs_claimable_and_names_the_next(store: Store, clock: FakeClock) -> None:
    for seconds in (5, 10, 60):
        await enqueue_one(store, a_job(delay=timedelta(seconds=seconds)))
    clock.advance(seconds=10)
    assert await store.promote() == Promoted(2, clock.now() + timedelta(seconds=50), unleased_at=clock.now())
    assert await store.promote() == Promoted(0, clock.now() + timedelta(seconds=50), unleased_at=clock.now())
    assert {job.wait_reason for job in await all_jobs(store, JobState.PENDING)} == {WaitReason.DELAY}


async def test_promote_is_bounded_and_takes_the_oldest_first(store: Store, clock: FakeClock) -> None:
    ids = [await enqueue_one(store, a_job(delay=timedelta(seconds=9 - place))) for place in range(5)]
    clock.advance(seconds=60)
    assert (await store.promote(2)).jobs == 2
    assert [job.id for job in await all_jobs(store, JobState.PENDING)] == ids[3:]


async def test_nothing_scheduled_has_no_next_time(store: Store, clock: FakeClock) -> None:
    assert await store.promote() == Promoted(0, None, has_pending=False, unleased_at=clock.now())


async def test_promote_tells_of_what_is_pending_and_of_leases(store: Store, clock: FakeClock) -> None:
    held = await running(store)
    assert await store.promote() == Promoted(0, None, has_pending=False, unleased_at=None)
    await enqueue_one(store)
    assert await store.promote() == Promoted(0, None, has_pending=True, unleased_at=None)
    await end(store, clock, held)
    assert await store.promote() == Promoted(0, None, has_pending=True, unleased_at=clock.now())


async def test_promote_tells_of_templates_that_are_due(store: Store, clock: FakeClock) -> None:
    await enqueue_one(store, a_job(recurrence=recurring(timedelta(seconds=10)), spawn=True))
    quiet = Promoted(0, clock.now() + timedelta(seconds=10), has_pending=False, unleased_at=clock.now())
    assert await store.promote() == quiet
    clock.advance(seconds=10)
    assert await store.promote() == Promoted(0, None, has_templates=True, has_pending=False, unleased_at=clock.now())
    await store.spawn()
    assert await store.promote() == Promoted(0, clock.now() + timedelta(seconds=10), unleased_at=clock.now())


def a_template(clock: FakeClock, **options: Any) -> NewJob:
    rule = Recurrence(cadence=Cron("@hourly"))
    return a_job("crawl", recurrence=rule, spawn=True, run_at=rule.first(clock.now()), name="hourly", **options)


async def test_a_template_is_never_claimed_and_spawns_when_due(store: Store, clock: FakeClock) -> None:
    template = await enqueue_one(store, a_template(clock, payload='{"n":1}', priority=4, subject="r/python"))
    slot = (await store.get(template)).run_at
    assert await store.spawn() == []
    clock.advance(minutes=31)
    await due(store)
    assert await claim(store) == []
    [child] = await store.spawn()
    job = await store.get(child.id)
    assert (job.task, job.payload_json, job.priority, job.subject) == ("crawl", '{"n":1}', 4, "r/python")
    assert (job.state, job.parent_id, job.created_by) == (JobState.PENDING, template, "scheduler:hourly")
    moved = await store.get(template)
    assert (moved.state, moved.run_at, moved.slot_at) == (JobState.SCHEDULED, slot + timedelta(hours=1), moved.run_at)
    assert await store.spawn() == []


async def test_a_template_counts_from_its_slot(store: Store, clock: FakeClock) -> None:
    rule = recurring(timedelta(minutes=10))
    template = await enqueue_one(store, a_job(recurrence=rule, spawn=True, run_at=clock.now()))
    first = clock.now()
    clock.advance(seconds=20)
    await store.spawn()
    assert (await store.get(template)).run_at == first + timedelta(minutes=10)


async def test_a_template_with_a_child_key_has_one_active_job(store: Store, clock: FakeClock) -> None:
    await enqueue_one(store, a_template(clock, child_key="r/python"))
    clock.advance(hours=1)
    [first] = await store.spawn()
    clock.advance(hours=1)
    [second] = await store.spawn()
    assert second == (first.id, True)


async def test_two_processes_that_saw_the_same_slot_spawn_once(store: Store, clock: FakeClock) -> None:
    await enqueue_one(store, a_template(clock))
    clock.advance(hours=1)
    [seen] = await store.run(recurrence.due_templates(10))
    assert await store.run(templates.spawn(seen.id, seen.run_at)) is not None
    assert await store.run(templates.spawn(seen.id, seen.run_at)) is None


async def test_run_now_of_a_template_spawns_at_once(store: Store, clock: FakeClock) -> None:
    template = await enqueue_one(store, a_template(clock))
    await store.pause([template])
    (await store.run_now([template])).one()
    assert len(await store.spawn()) == 1
    assert (await store.get(template)).state is JobState.PAUSED


async def test_a_template_nobody_can_read_is_buried_and_holds_up_nobody(store: Store, clock: FakeClock) -> None:
    bad = await enqueue_one(store, a_template(clock))
    await execute(store, f"update windlass_jobs set cadence = '{{}}', name = null where id = {bad}")
    await enqueue_one(store, a_template(clock))
    clock.advance(hours=1)
    assert len(await store.spawn()) == 1
    [letter] = await store.list_dead_letters(bad)
    assert (await store.get(bad)).state is JobState.FAILED
    assert "cannot be read" in letter.error
    clock.advance(hours=1)
    assert len(await store.spawn()) == 1
    assert (await store.retry([bad])).one().state is JobState.SCHEDULED
    assert len(await store.spawn()) == 0
    assert (await store.get(bad)).state is JobState.FAILED
    # What stays broken is reported for as long as it is there.
    (await store.delete([bad])).one()


async def test_a_recurring_job_without_a_time_waits_for_its_first_slot(store: Store, clock: FakeClock) -> None:
    for cadence, first in ((Cron("0 3 * * *"), 16.5 * 60), (Every(timedelta(minutes=30)), 30), (ByHandler(), 0)):
        job = await store.get(await enqueue_one(store, a_job(recurrence=Recurrence(cadence=cadence))))
        assert job.run_at == job.slot_at == clock.now() + timedelta(minutes=first)


@pytest.mark.parametrize("limit", [0, -1])
async def test_limits_below_one_are_refused(store: Store, limit: int) -> None:
    for verb in (store.promote(limit), store.reclaim(limit=limit), store.lapsed(limit), store.fold_counts(limit)):
        with pytest.raises(InvalidInput, match=r"^limit: "):
            await verb
    with pytest.raises(InvalidInput, match=r"^limit: "):
        await store.spawn(limit)


async def test_counts_are_what_is_there(store: Store, clock: FakeClock) -> None:
    await store.enqueue([a_job(f"task-{place % 3}", lane=f"lane-{place % 2}") for place in range(30)])
    batch = await claim(store, 20)
    for place, job in enumerate(batch):
        if place < 15:
            await end(store, clock, job, failure() if place % 2 else None)
    await store.cancel([batch[15].id, batch[16].id])
    for _ in range(2):
        counted = Counter({tuple(count[:4]): count.jobs for count in await store.count_jobs()})
        real = Counter((job.task, job.lane, job.state, job.wait_reason) for job in await all_jobs(store))
        assert counted == real
        await store.fold_counts()
    assert await execute(store, "select count(*) from windlass_count_deltas") == [(0,)]


async def test_counts_follow_deletes_and_raw_changes(store: Store) -> None:
    await running(store)
    await store.enqueue([a_job("gone") for _ in range(3)])
    await execute(store, "delete from windlass_jobs where task = 'gone'")
    await execute(store, "delete from windlass_bodies where job_id not in (select id from windlass_jobs)")
    assert [(count.task, count.state, count.jobs) for count in await store.count_jobs()] == [("work", "running", 1)]
