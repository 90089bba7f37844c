"""Leases: held by token, renewed by heartbeat, lost by silence."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.store.builders import (
    LEASE,
    a_job,
    claim,
    claim_one,
    claim_suspect,
    due,
    end,
    enqueue_one,
    failure,
    recurring,
    running,
)
from tests.support.raw import execute
from windlass.core.job import JobState, RunReason, RunStatus, WaitReason
from windlass.core.outcome import Run
from windlass.errors import LeaseLost
from windlass.store import Store
from windlass.testing import FakeClock
from windlass.upkeep.reclaimer import Reclaimer


async def test_renewing_moves_the_expiry_and_reports_the_start(store: Store, clock: FakeClock) -> None:
    held = await running(store, started=False)
    started_at = clock.advance(seconds=2)
    clock.advance(seconds=8)
    [renewed] = await store.renew([(held.id, held.token, started_at)], LEASE)
    job = await store.get(held.id)
    assert renewed.lease_expires_at == job.lease_expires_at == clock.now() + LEASE
    assert job.started_at == started_at
    assert not renewed.should_stop


async def test_a_renewal_never_shortens_a_lease(store: Store, clock: FakeClock) -> None:
    held = await running(store)
    await store.renew([(held.id, held.token, None)], timedelta(seconds=1))
    assert (await store.get(held.id)).lease_expires_at == clock.now() + LEASE


async def test_an_expired_lease_that_nobody_took_can_still_be_renewed_and_finished(store: Store, clock: FakeClock) -> None:
    held = await running(store)
    clock.advance(hours=1)
    assert len(await store.renew([(held.id, held.token, None)], LEASE)) == 1
    clock.advance(hours=1)
    assert await end(store, clock, held)
    assert (await store.get(held.id)).state is JobState.COMPLETED


async def test_late_worker_cannot_touch_a_reclaimed_job(store: Store, clock: FakeClock) -> None:
    slow = await running(store)
    clock.advance(seconds=31)
    assert await store.reclaim() == [slow.id]
    await due(store)
    quick = await claim_one(store, worker="quick")
    assert await store.renew([(slow.id, slow.token, None)], LEASE) == []
    with pytest.raises(LeaseLost):
        await store.progress(slow.id, slow.token, count=1)
    assert not await end(store, clock, slow)
    assert not await end(store, clock, slow, failure())
    assert await store.stop([(slow.id, slow.token, Run())]) == []
    assert await end(store, clock, quick)
    assert [run.worker for run in await store.list_executions(slow.id)] == ["quick", "worker-1"]


async def test_a_finish_is_accepted_once(store: Store, clock: FakeClock) -> None:
    held = await running(store)
    assert await end(store, clock, held)
    assert not await end(store, clock, held)
    assert len(await store.list_executions(held.id)) == 1


async def test_a_lost_lease_is_an_execution_and_the_job_is_due_at_once(store: Store, clock: FakeClock) -> None:
    held = await running(store)
    clock.advance(seconds=31)
    await store.reclaim()
    job = await store.get(held.id)
    [run] = await store.list_executions(held.id)
    assert (job.state, job.wait_reason, job.run_at) == (JobState.SCHEDULED, WaitReason.LOST, clock.now())
    assert (job.attempt, job.token, job.worker) == (1, None, None)
    assert (run.status, run.reason, run.number) == (RunStatus.FAILED, RunReason.LEASE_EXPIRED, 1)
    assert "worker-1" in (run.error or "")


async def test_a_lease_that_still_runs_is_not_reclaimed(store: Store, clock: FakeClock) -> None:
    await running(store)
    clock.advance(seconds=29)
    assert await store.reclaim() == []


async def test_attempts_used_up_by_lost_leases_end_as_a_dead_letter(store: Store, clock: FakeClock) -> None:
    job_id = await enqueue_one(store, a_job(max_attempts=3))
    for _ in range(3):
        await due(store)
        await claim_one(store)
        clock.advance(seconds=31)
        await store.reclaim()
    job = await store.get(job_id)
    [letter] = await store.list_dead_letters(job_id)
    assert (job.state, job.attempt, job.executions) == (JobState.FAILED, 3, 3)
    assert letter.closed_at is None


async def test_a_prefetched_job_of_a_dead_worker_comes_back_uncharged(store: Store, clock: FakeClock) -> None:
    held = await running(store, started=False)
    clock.advance(seconds=31)
    await store.reclaim()
    job = await store.get(held.id)
    assert (job.state, job.wait_reason, job.crashes) == (JobState.SCHEDULED, WaitReason.LOST, 1)
    assert (job.attempt, job.executions) == (0, 0)
    assert await store.list_executions(held.id) == []


async def test_the_killer_dies_and_its_neighbours_complete_with_one_attempt(store: Store, clock: FakeClock) -> None:
    jobs = await store.enqueue([a_job(max_attempts=3) for _ in range(100)])
    killer = jobs[40].id
    assert len(await claim(store, 100, started=False)) == 100
    deaths = 0
    clock.advance(seconds=31)
    await store.reclaim()
    await due(store)
    while suspect := await claim_suspect(store):
        if suspect.id == killer:
            deaths += 1
            clock.advance(seconds=31)
            await store.reclaim()
            await due(store)
        else:
            assert await end(store, clock, suspect)
    assert deaths == 3
    for enqueued in jobs:
        ended = await store.get(enqueued.id)
        expected = (JobState.FAILED, 3) if enqueued.id == killer else (JobState.COMPLETED, 1)
        assert (ended.state, ended.attempt) == expected


async def test_progress_is_kept_and_survives_the_worker(store: Store, clock: FakeClock) -> None:
    held = await running(store)
    await store.progress(held.id, held.token, count=5, cursor="page-2", message="half")
    await store.progress(held.id, held.token, count=7)
    clock.advance(seconds=31)
    await store.reclaim()
    await due(store)
    again = await claim_one(store)
    assert (again.last_cursor, again.progress_count) == ("page-2", 7)


async def test_reclaiming_waits_for_one_whole_lease_of_unbroken_contact(store: Store, clock: FakeClock) -> None:
    held = await running(store)
    reclaimer = Reclaimer(store, lease=LEASE)
    clock.advance(seconds=90)
    assert await reclaimer.round() == []
    for _ in range(2):
        clock.advance(seconds=14)
        assert await reclaimer.round() == []
    assert len(await store.renew([(held.id, held.token, None)], LEASE)) == 1
    clock.advance(seconds=14)
    assert await reclaimer.round() == []
    assert await end(store, clock, held)


async def test_a_silent_worker_is_reclaimed_after_contact(store: Store, clock: FakeClock) -> None:
    held = await running(store)
    reclaimer = Reclaimer(store, lease=LEASE)
    taken = []
    for _ in range(5):
        taken += await reclaimer.round()
        clock.advance(seconds=10)
    assert taken == [held.id]


@pytest.mark.parametrize(("column", "text"), [("cadence", "garbage"), ("retry", "unknown")])
async def test_a_row_nobody_can_read_fails_for_good_and_holds_up_nobody(
    store: Store, clock: FakeClock, column: str, text: str
) -> None:
    bad = await running(store, a_job(recurrence=recurring(), run_at=clock.now()))
    good = await running(store)
    await execute(store, f"update windlass_jobs set {column} = '{text}' where id = {bad.id}")
    clock.advance(seconds=31)
    assert await store.reclaim() == [bad.id, good.id]
    [letter] = await store.list_dead_letters(bad.id)
    assert "cannot be read" in letter.error
    assert (await store.get(good.id)).state is JobState.SCHEDULED
    await execute(store, f"update windlass_jobs set cadence = null, slot_at = null, retry = 'task' where id = {bad.id}")
