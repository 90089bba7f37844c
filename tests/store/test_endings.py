"""Endings by hand: bury, fail, take_lease; and boost, clone, delete."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from tests.store.builders import (
    a_job,
    claim,
    claim_one,
    due,
    end,
    enqueue_one,
    fail_for_good,
    failure,
    pending_slot,
    recurring,
    running,
)
from tests.support.raw import execute
from windlass.core.cadence import ByHandler, OnExhausted, Recurrence
from windlass.core.job import JobState, RunReason, RunStatus, UniqueScope, WaitReason
from windlass.core.outcome import Failure, Run, fingerprint
from windlass.core.retry import RetrySpec
from windlass.errors import InvalidInput, InvalidTransition, JobNotFound, LeaseHeld, SlotTaken
from windlass.store import SqlStore
from windlass.testing import FakeClock


async def test_boost_raises_base_and_current_up_to_a_hundred(store: SqlStore, clock: FakeClock) -> None:
    found = {}
    for priority in (-(2**31), -10, 0, 95, 100, 101, 2**31 - 1):
        job_id = await enqueue_one(store, clock, a_job(priority=priority))
        job = (await store.boost([job_id], 20, clock.now())).one()
        assert job.priority == job.base_priority
        found[priority] = job.priority
    assert found == {-(2**31): 20 - 2**31, -10: 10, 0: 20, 95: 100, 100: 100, 101: 101, 2**31 - 1: 2**31 - 1}


async def test_an_aged_job_is_boosted_from_both_its_priorities(store: SqlStore, clock: FakeClock) -> None:
    job_id = await enqueue_one(store, clock, a_job(priority=5))
    await execute(store, f"update windlass_jobs set priority = 90 where id = {job_id}")
    job = (await store.boost([job_id], 30, clock.now())).one()
    assert (job.priority, job.base_priority) == (100, 35)


@pytest.mark.parametrize("amount", [0, -1, 101, True, 1.5])
async def test_a_boost_out_of_range_is_refused(store: SqlStore, clock: FakeClock, amount: int) -> None:
    with pytest.raises(InvalidInput, match=r"^amount: "):
        await store.boost([1], amount, clock.now())


async def test_a_priority_may_go_down_and_is_the_one_to_return_to(store: SqlStore, clock: FakeClock) -> None:
    held = await running(store, clock, a_job(priority=50))
    (await store.set_priority([held.id], -3, clock.now())).one()
    await end(store, clock, held, failure())
    job = await store.get(held.id)
    assert (job.priority, job.base_priority) == (-3, -3)
    with pytest.raises(InvalidInput, match=r"^priority: "):
        await store.set_priority([held.id], 2**31)


async def test_a_buried_job_has_a_letter_and_frees_its_key(store: SqlStore, clock: FakeClock) -> None:
    job_id = await enqueue_one(store, clock, a_job(unique_key="k", payload='{"n":1}'))
    job = (await store.bury([job_id], "row 17 is bad\0", clock.now())).one()
    [letter] = await store.list_dead_letters(job_id)
    assert (job.state, job.last_error, job.done_reason, job.unique_slot) == (JobState.FAILED, letter.error, "buried", None)
    assert (letter.error, letter.died_at) == ("row 17 is bad\ufffd", clock.now())
    assert letter.fingerprint == fingerprint("work", Failure("row 99 is bad\ufffd", "Buried"))
    assert await store.list_executions(job_id) == []


async def test_burying_jobs_of_many_tasks_keeps_their_fingerprints_apart(store: SqlStore, clock: FakeClock) -> None:
    tasks = ("a", "b", 'quo"ted.$[0]')
    jobs = [await enqueue_one(store, clock, a_job(task)) for task in tasks]
    await store.bury(jobs, "enough", clock.now())
    for task, job_id in zip(tasks, jobs, strict=True):
        [letter] = await store.list_dead_letters(job_id)
        assert letter.fingerprint == fingerprint(task, Failure("enough", "Buried"))


async def test_a_buried_schedule_updates_its_open_letter(store: SqlStore, clock: FakeClock) -> None:
    held = await running(store, clock, a_job(recurrence=recurring(), run_at=clock.now(), max_attempts=1))
    await end(store, clock, held, failure())
    clock.advance(seconds=1)
    await store.bury([held.id], "enough", clock.now())
    [letter] = await store.list_dead_letters(held.id)
    assert (letter.deaths, letter.error) == (2, "enough")


async def test_a_paused_job_cannot_be_buried(store: SqlStore, clock: FakeClock) -> None:
    job_id = await enqueue_one(store, clock, a_job(delay=timedelta(hours=1)))
    await store.pause([job_id], clock.now())
    with pytest.raises(InvalidTransition, match=r"paused → failed"):
        (await store.bury([job_id], "x", clock.now())).one()


async def test_a_run_failed_by_hand_follows_its_policy(store: SqlStore, clock: FakeClock) -> None:
    held = await running(store, clock, a_job(max_attempts=2))
    clock.advance(seconds=2)
    job = (await store.fail([held.id], "stuck", will_retry=True, now=clock.now())).one()
    [row] = await store.list_executions(held.id)
    assert (job.state, job.wait_reason, job.run_at) == (JobState.SCHEDULED, WaitReason.RETRY, clock.now() + timedelta(seconds=1))
    assert (row.status, row.reason, row.error, row.duration_ms) == (RunStatus.FAILED, RunReason.ERROR, "stuck", 2000)
    assert not await end(store, clock, held)
    clock.advance(seconds=5)
    await due(store, clock)
    last = await claim_one(store, clock)
    assert (await store.fail([last.id], "again", will_retry=True, now=clock.now())).one().state is JobState.FAILED
    [letter] = await store.list_dead_letters(held.id)
    assert letter.error == "again"


async def test_a_run_failed_for_good_has_a_letter(store: SqlStore, clock: FakeClock) -> None:
    held = await running(store, clock, a_job(max_attempts=5))
    job = (await store.fail([held.id], "never", will_retry=False, now=clock.now())).one()
    [letter] = await store.list_dead_letters(held.id)
    assert (job.state, letter.error) == (JobState.FAILED, "never")


async def test_a_prefetched_run_failed_by_hand_counts_from_its_claim(store: SqlStore, clock: FakeClock) -> None:
    held = await running(store, clock, started=False)
    clock.advance(seconds=3)
    job = (await store.fail([held.id], "stuck", will_retry=True, now=clock.now())).one()
    [row] = await store.list_executions(held.id)
    assert (job.attempt, job.executions, row.started_at) == (1, 1, held.claimed_at)


async def test_a_schedule_survives_a_run_failed_by_hand(store: SqlStore, clock: FakeClock) -> None:
    for rule, state in (
        (recurring(), JobState.SCHEDULED),
        (recurring(on_exhausted=OnExhausted.FAIL), JobState.FAILED),
        (Recurrence(cadence=ByHandler()), JobState.SCHEDULED),
    ):
        held = await running(store, clock, a_job(recurrence=rule, run_at=clock.now()))
        assert (await store.fail([held.id], "no", will_retry=False, now=clock.now())).one().state is state


async def test_a_due_job_that_is_failed_waits_for_its_retry_and_is_charged_nothing(store: SqlStore, clock: FakeClock) -> None:
    job_id = await enqueue_one(store, clock, a_job(retry=RetrySpec(base=timedelta(seconds=7), jitter=0.0)))
    job = (await store.fail([job_id], "no", will_retry=True, now=clock.now())).one()
    assert (job.state, job.wait_reason, job.run_at) == (JobState.SCHEDULED, WaitReason.RETRY, clock.now() + timedelta(seconds=7))
    assert (job.attempt, job.executions, job.last_error, job.last_error_at) == (0, 0, "no", clock.now())
    clock.advance(seconds=7)
    await due(store, clock)
    assert (await claim_one(store, clock)).attempt == 1


async def test_a_job_that_waits_for_its_time_is_only_failed_for_good(store: SqlStore, clock: FakeClock) -> None:
    job_id = await enqueue_one(store, clock, a_job(delay=timedelta(hours=1)))
    with pytest.raises(InvalidTransition, match=r"cannot fail job .*scheduled → scheduled"):
        (await store.fail([job_id], "no", will_retry=True, now=clock.now())).one()
    assert (await store.fail([job_id], "no", will_retry=False, now=clock.now())).one().state is JobState.FAILED


async def test_more_runs_than_one_statement_takes_are_failed_together(store: SqlStore, clock: FakeClock) -> None:
    await store.enqueue([a_job(max_attempts=1) for _ in range(601)], clock.now())
    held = await claim(store, clock, 601)
    moved = await store.fail([job.id for job in held], "all", will_retry=False, now=clock.now())
    assert len(moved.changed) == 601


async def test_a_taken_lease_is_a_lost_one(store: SqlStore, clock: FakeClock) -> None:
    held = await running(store, clock)
    job = (await store.take_lease([held.id], clock.now())).one()
    [row] = await store.list_executions(held.id)
    assert (job.state, job.wait_reason, job.crashes, job.run_at) == (JobState.SCHEDULED, WaitReason.LOST, 1, clock.now())
    assert (row.status, row.reason) == (RunStatus.FAILED, RunReason.LEASE_EXPIRED)
    assert not await end(store, clock, held)


async def test_a_taken_lease_and_a_reclaimed_one_leave_the_same(store: SqlStore, clock: FakeClock) -> None:
    for started in (True, False):
        jobs = [a_job(f"t{started}-{way}", max_attempts=2) for way in range(2)]
        held = [await running(store, clock, job, started=started) for job in jobs]
        clock.advance(seconds=31)
        await store.take_lease([held[0].id], clock.now())
        await store.reclaim(now=clock.now())
        [taken, reclaimed] = [await store.get(job.id) for job in held]
        shown = [
            (job.state, job.wait_reason, job.attempt, job.executions, job.crashes, job.run_at, job.last_error)
            for job in (taken, reclaimed)
        ]
        assert shown[0] == shown[1]
        await store.cancel([job.id for job in held], now=clock.now())


async def test_taking_the_lease_of_a_cancelled_run_is_its_stop(store: SqlStore, clock: FakeClock) -> None:
    held = await running(store, clock, a_job(unique_key="k"))
    await store.cancel([held.id], now=clock.now())
    job = (await store.take_lease([held.id], clock.now())).one()
    assert (job.state, job.token, job.unique_slot) == (JobState.CANCELLED, None, None)
    assert await store.stop([(held.id, held.token, Run())], clock.now()) == []


async def test_a_job_whose_key_was_taken_meanwhile_is_superseded(store: SqlStore, clock: FakeClock) -> None:
    held = await pending_slot(store, clock)
    await enqueue_one(store, clock, a_job(unique_key="k"))
    job = (await store.take_lease([held.id], clock.now())).one()
    assert (job.state, job.done_reason) == (JobState.CANCELLED, "superseded")


async def test_a_clone_is_a_new_job_with_all_the_old_one_had(store: SqlStore, clock: FakeClock) -> None:
    wish = a_job(
        "crawl",
        lane="fast",
        payload='{"url":"x"}',
        priority=7,
        max_attempts=4,
        retry=RetrySpec(profile="crawl", jitter=0.0),
        timeout=timedelta(seconds=9),
        unique_key="k",
        unique_scope=UniqueScope.PENDING,
        subject="s",
        correlation_id="c",
        target_count=5,
        item_key='["phone"]',
        collection="people",
        metadata='{"m":1}',
        description="d",
        created_by="ann",
    )
    dead = await fail_for_good(store, clock)
    held = await running(store, clock, wish)
    await end(store, clock, held)
    old = await store.get(held.id)
    new = (await store.clone([held.id], now=clock.now())).one()
    same = [
        "task",
        "lane",
        "payload",
        "base_priority",
        "max_attempts",
        "retry",
        "timeout_us",
        "unique_key",
        "unique_scope",
        "subject",
        "correlation_id",
        "target_count",
        "item_key",
        "collection",
        "metadata",
        "description",
        "created_by",
        "cadence",
    ]
    assert {name: getattr(new, name) for name in same} == {name: getattr(old, name) for name in same}
    assert (new.id != old.id, new.parent_id, new.state, new.attempt) == (True, old.id, JobState.PENDING, 0)
    assert (await store.clone([dead.id], "bob", clock.now())).one().created_by == "bob"


async def test_a_clone_goes_through_the_uniqueness_gate(store: SqlStore, clock: FakeClock) -> None:
    done, other = await running(store, clock, a_job(unique_key="k")), await running(store, clock, a_job("other"))
    await end(store, clock, done)
    await end(store, clock, other)
    moved = await store.clone([done.id, done.id], now=clock.now())
    [new] = moved.changed
    with pytest.raises(SlotTaken, match=f"job {new.id}"):
        await store.clone([done.id], now=clock.now())
    moved = await store.clone([done.id, other.id], now=clock.now())
    assert [job.parent_id for job in moved.changed] == [other.id]
    assert [job.id for job in moved.refused] == [done.id]


async def test_a_clone_of_a_schedule_has_no_name(store: SqlStore, clock: FakeClock) -> None:
    job_id = await enqueue_one(store, clock, a_job(recurrence=recurring(), name="nightly"))
    await store.cancel([job_id], now=clock.now())
    new = (await store.clone([job_id], now=clock.now())).one()
    assert (new.name, new.recurrence, new.state) == (None, recurring(), JobState.SCHEDULED)


async def test_only_a_finished_job_can_be_cloned(store: SqlStore, clock: FakeClock) -> None:
    held = await running(store, clock)
    with pytest.raises(InvalidTransition, match=r"cannot clone job \d+: running"):
        (await store.clone([held.id], now=clock.now())).one()


async def test_a_deleted_job_leaves_nothing_but_its_items(store: SqlStore, clock: FakeClock) -> None:
    dead = await fail_for_good(store, clock, a_job(unique_key="k", max_attempts=1))
    now = "0" if store.database.dialect == "sqlite" else "now()"
    await execute(
        store,
        f"insert into windlass_items (collection, key, job_id, data, created_at) values ('c', 'k', {dead.id}, '{{}}', {now})",
    )
    await execute(store, f"insert into windlass_idempotency (job_id, key, created_at) values ({dead.id}, 'k', {now})")
    assert (await store.delete([dead.id], clock.now())).one().id == dead.id
    with pytest.raises(JobNotFound):
        await store.get(dead.id)
    counted = []
    for table in ("bodies", "executions", "dead_letters", "idempotency", "items"):
        [[rows]] = await execute(store, f"select count(*) from windlass_{table} where job_id = {dead.id}")
        counted.append(rows)
    assert counted == [0, 0, 0, 0, 1]
    assert (await store.delete([dead.id], clock.now())).missing == (dead.id,)


@pytest.mark.parametrize("is_cancelled", [False, True])
async def test_a_held_job_cannot_be_deleted(store: SqlStore, clock: FakeClock, *, is_cancelled: bool) -> None:
    held = await running(store, clock)
    if is_cancelled:
        await store.cancel([held.id], now=clock.now())
    with pytest.raises(LeaseHeld, match="worker-1 holds its lease"):
        (await store.delete([held.id], clock.now())).one()
    assert (await store.get(held.id)).token == held.token


async def test_a_number_is_not_given_out_again(store: SqlStore, clock: FakeClock) -> None:
    last = await enqueue_one(store, clock)
    await store.delete([last], clock.now())
    assert await enqueue_one(store, clock) > last


async def test_delete_and_claim_at_once_leave_no_half_of_a_job(store: SqlStore, clock: FakeClock) -> None:
    for _ in range(8):
        job_id = await enqueue_one(store, clock)
        slices = await store.slices()
        moved, taken = await asyncio.gather(store.delete([job_id], clock.now()), claim(store, clock))
        assert bool(moved.changed) != bool(taken)
        assert slices.open
        for held in taken:
            assert await end(store, clock, held)


async def test_of_a_failure_by_hand_and_a_finish_at_once_one_counts(store: SqlStore, clock: FakeClock) -> None:
    for _ in range(8):
        held = await running(store, clock)
        moved, was_accepted = await asyncio.gather(
            store.fail([held.id], "no", will_retry=False, now=clock.now()), end(store, clock, held)
        )
        assert bool(moved.changed) != was_accepted
        assert len(await store.list_executions(held.id)) == 1
