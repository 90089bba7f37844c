"""The override goes round the table of moves: it revokes leases, takes and frees keys, and writes no dead letter."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from tests.store.builders import (
    a_job,
    claim,
    claim_one,
    end,
    enqueue_one,
    fail_for_good,
    failure,
    pending_slot,
    recurring,
    running,
)
from tests.support.raw import execute
from windlass.core.audit import Actor
from windlass.core.job import Job, JobState, RunReason, RunStatus, WaitReason
from windlass.core.outcome import Run
from windlass.core.transitions import Moved
from windlass.errors import InvalidInput, InvalidTransition, SlotTaken
from windlass.store import Store
from windlass.testing import FakeClock

LENGTH = timedelta(minutes=15)


async def override(store: Store, status: JobState, *ids: int) -> Moved:
    return await store.override_status(ids, status, by="ann", lease_length=LENGTH)


async def overridden(store: Store, status: JobState, job_id: int) -> Job:
    return (await override(store, status, job_id)).one()


@pytest.mark.parametrize("status", [JobState.PENDING, JobState.RUNNING, JobState.COMPLETED, JobState.FAILED])
async def test_the_worker_of_a_revoked_run_is_refused(store: Store, clock: FakeClock, status: JobState) -> None:
    held = await running(store)
    clock.advance(seconds=1)
    left = await overridden(store, status, held.id)
    assert not await end(store, clock, held)
    assert await store.renew([(held.id, held.token, None)], LENGTH) == []
    assert await store.get(held.id) == left
    [row] = [one for one in await store.list_executions(held.id) if one.status is not RunStatus.RUNNING]
    assert (row.status, row.reason, row.number) == (RunStatus.CANCELLED, RunReason.STOPPED, 1)
    assert await store.list_dead_letters(held.id) == []


async def test_a_revoked_run_that_had_not_started_leaves_nothing(store: Store) -> None:
    held = await running(store, started=False)
    job = await overridden(store, JobState.COMPLETED, held.id)
    assert (job.attempt, job.executions, job.done_reason) == (0, 0, "overridden")
    assert await store.list_executions(held.id) == []


async def test_pending_is_a_fresh_start(store: Store, clock: FakeClock) -> None:
    dead = await fail_for_good(store, clock)
    clock.advance(seconds=5)
    job = await overridden(store, JobState.PENDING, dead.id)
    [letter] = await store.list_dead_letters(dead.id)
    assert (job.wait_reason, job.attempt, job.run_at, job.closed_at) == (WaitReason.OPERATOR, 0, clock.now(), None)
    assert (letter.closed_reason, letter.closed_at) == ("overridden", clock.now())
    assert (await claim_one(store)).execution == 2


async def test_running_by_hand_ends_as_a_lost_lease(store: Store, clock: FakeClock) -> None:
    job_id = await enqueue_one(store)
    job = await overridden(store, JobState.RUNNING, job_id)
    assert (job.attempt, job.executions, job.started_at, job.worker) == (1, 1, clock.now(), "operator:ann")
    assert job.lease_expires_at == clock.now() + LENGTH
    assert await claim(store) == []
    clock.advance(minutes=15)
    assert await store.reclaim() == [job_id]
    [row] = await store.list_executions(job_id)
    assert (row.reason, row.worker) == (RunReason.LEASE_EXPIRED, "operator:ann")


async def test_each_running_by_hand_has_a_token_of_its_own(store: Store) -> None:
    job_id = await enqueue_one(store)
    tokens = {(await overridden(store, JobState.RUNNING, job_id)).token for _ in range(3)}
    assert len(tokens) == 3
    assert (await store.get(job_id)).attempt == 1


async def test_failed_by_hand_has_no_letter_and_can_be_retried(store: Store) -> None:
    job_id = await enqueue_one(store)
    await overridden(store, JobState.FAILED, job_id)
    assert await store.list_dead_letters(job_id) == []
    assert (await store.retry([job_id])).one().state is JobState.PENDING


async def test_a_failed_job_that_stays_failed_keeps_its_letter(store: Store, clock: FakeClock) -> None:
    dead = await fail_for_good(store, clock)
    await overridden(store, JobState.FAILED, dead.id)
    [letter] = await store.list_dead_letters(dead.id)
    assert letter.closed_at is None


async def test_the_open_letter_of_a_schedule_that_went_on_stays_open(store: Store, clock: FakeClock) -> None:
    held = await running(store, a_job(recurrence=recurring(), run_at=clock.now(), max_attempts=1))
    await end(store, clock, held, failure())
    await overridden(store, JobState.PENDING, held.id)
    [letter] = await store.list_dead_letters(held.id)
    assert letter.closed_at is None


@pytest.mark.parametrize("status", [JobState.PENDING, JobState.RUNNING])
async def test_an_override_into_a_taken_key_names_the_holder(store: Store, clock: FakeClock, status: JobState) -> None:
    done = await running(store, a_job(unique_key="k"))
    await end(store, clock, done)
    holder = await enqueue_one(store, a_job(unique_key="k"))
    with pytest.raises(SlotTaken, match=f"job {holder}"):
        await override(store, status, done.id)
    free = await enqueue_one(store)
    moved = await override(store, status, done.id, free)
    assert [job.id for job in moved.changed] == [free]
    assert (await store.get(done.id)).state is JobState.COMPLETED


async def test_of_two_jobs_with_one_key_the_holder_or_the_first_comes_back(store: Store, clock: FakeClock) -> None:
    twins = [await fail_for_good(store, clock, a_job(unique_key="k", max_attempts=1)) for _ in range(2)]
    moved = await override(store, JobState.PENDING, twins[1].id, twins[0].id)
    assert [job.id for job in moved.changed] == [twins[0].id]
    assert (await store.get(twins[0].id)).unique_slot == "k"


async def test_a_key_held_only_while_waiting_is_free_during_a_run_by_hand(store: Store) -> None:
    first = await enqueue_one(store, a_job(unique_key="k", unique_scope="pending"))
    assert (await overridden(store, JobState.RUNNING, first)).unique_slot is None
    second = await enqueue_one(store, a_job(unique_key="k", unique_scope="pending"))
    moved = await override(store, JobState.RUNNING, first, second)
    assert len(moved.changed) == 2


async def test_completing_by_hand_frees_the_key(store: Store) -> None:
    held = await running(store, a_job(unique_key="k"))
    await overridden(store, JobState.COMPLETED, held.id)
    [free] = await store.enqueue([a_job(unique_key="k")])
    assert not free.is_duplicate


async def test_a_cancelled_run_that_has_not_stopped_is_let_go(store: Store) -> None:
    held = await running(store, a_job(unique_key="k"))
    await store.cancel([held.id])
    job = await overridden(store, JobState.PENDING, held.id)
    assert (job.token, job.unique_slot) == (None, "k")
    assert await store.stop([(held.id, held.token, Run(log_excerpt="late"))]) == []
    [row] = await store.list_executions(held.id)
    assert (row.reason, row.log_excerpt) == (RunReason.CANCELLED, None)


async def test_a_template_cannot_run(store: Store) -> None:
    job_id = await enqueue_one(store, a_job(recurrence=recurring(), spawn=True))
    with pytest.raises(InvalidTransition, match=r"cannot override job \d+: scheduled → running"):
        await overridden(store, JobState.RUNNING, job_id)


@pytest.mark.parametrize("status", [JobState.CANCELLED, JobState.PAUSED, JobState.SCHEDULED])
async def test_other_states_are_reached_by_their_own_verbs(store: Store, status: JobState) -> None:
    with pytest.raises(InvalidInput, match=r"^status: "):
        await override(store, status, 1)


async def test_bad_names_and_leases_are_refused(store: Store) -> None:
    with pytest.raises(InvalidInput, match=r"^by: "):
        await store.override_status([1], JobState.RUNNING, by="", lease_length=LENGTH)
    with pytest.raises(InvalidInput, match=r"^lease_length: "):
        await store.override_status([1], JobState.RUNNING, by="ann", lease_length=timedelta())


async def test_a_held_job_stays_held(store: Store, clock: FakeClock) -> None:
    held = await running(store, a_job(recurrence=recurring(), run_at=clock.now()))
    await store.disable([held.id])
    assert (await overridden(store, JobState.PENDING, held.id)).held
    await end(store, clock, await claim_one(store))
    assert (await store.get(held.id)).state is JobState.PAUSED


async def test_an_override_is_audited_with_its_target(store: Store) -> None:
    job_id = await enqueue_one(store)
    await overridden(store.acting(Actor("ann")), JobState.FAILED, job_id)
    [[principal, action, target, outcome]] = await execute(store, "select principal, action, target, outcome from windlass_audit")
    assert (principal, action, target, outcome) == ("ann", "override", f"job:{job_id}", "done")
    [[details]] = await execute(store, "select cast(details as text) from windlass_audit")
    assert '"target":"failed"' in details


async def test_a_job_with_fewer_attempts_than_it_used_may_be_completed(store: Store) -> None:
    dead = await pending_slot(store)
    await overridden(store, JobState.FAILED, dead.id)
    assert (await overridden(store, JobState.COMPLETED, dead.id)).done_reason == "overridden"


@pytest.mark.parametrize("status", [JobState.PENDING, JobState.COMPLETED])
async def test_of_an_override_and_a_finish_at_once_one_wins(store: Store, clock: FakeClock, status: JobState) -> None:
    for _ in range(8):
        held = await running(store)
        moved, was_accepted = await asyncio.gather(override(store, status, held.id), end(store, clock, held))
        [row] = await store.list_executions(held.id)
        assert len(moved.changed) == 1
        assert row.status is (RunStatus.COMPLETED if was_accepted else RunStatus.CANCELLED)
        assert (await store.get(held.id)).state is status
        await store.cancel([held.id])


async def test_of_rivals_that_override_into_one_key_one_gets_it(store: Store, clock: FakeClock) -> None:
    twins = [await fail_for_good(store, clock, a_job(unique_key="k", max_attempts=1)) for _ in range(4)]
    answers = await asyncio.gather(*(override(store, JobState.PENDING, twin.id) for twin in twins), return_exceptions=True)
    assert sum(isinstance(answer, Moved) for answer in answers) == 1
    assert sum(isinstance(answer, SlotTaken) for answer in answers) == 3
