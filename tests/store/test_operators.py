"""Operator moves: legal ones change the row, others name both states."""

from __future__ import annotations

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
from windlass.core.audit import Actor
from windlass.core.cadence import Cron, Recurrence
from windlass.core.job import Edit, JobState, RunReason, RunStatus, WaitReason
from windlass.core.outcome import Run, Stopped
from windlass.core.retry import RetrySpec
from windlass.errors import InvalidInput, InvalidTransition, JobNotFound, SlotTaken
from windlass.store import Store
from windlass.testing import FakeClock


async def test_cancel_of_a_waiting_job_is_final(store: Store, clock: FakeClock) -> None:
    job_id = await enqueue_one(store, a_job(unique_key="k"))
    job = (await store.cancel([job_id])).one()
    assert (job.state, job.closed_at, job.unique_slot) == (JobState.CANCELLED, clock.now(), None)
    with pytest.raises(InvalidTransition, match=r"cancelled → cancelled"):
        (await store.cancel([job_id])).one()


async def test_cancel_during_a_run_wins_at_once(store: Store, clock: FakeClock) -> None:
    held = await running(store, a_job(unique_key="k"))
    clock.advance(seconds=1)
    job = (await store.cancel([held.id], "not wanted")).one()
    [row] = await store.list_executions(held.id)
    assert (job.state, job.token, job.unique_slot) == (JobState.CANCELLED, held.token, "k")
    assert (row.status, row.reason, row.error) == (RunStatus.CANCELLED, RunReason.CANCELLED, "not wanted")
    assert not await end(store, clock, held)
    [told] = await store.renew([(held.id, held.token, None)], timedelta(seconds=30))
    assert (told.should_stop, told.is_cancelled) == (True, True)
    assert (await store.get(held.id)).state is JobState.CANCELLED


async def test_the_stopped_report_frees_the_key_and_adds_what_was_measured(store: Store, clock: FakeClock) -> None:
    held = await running(store, a_job(unique_key="k"))
    await store.cancel([held.id])
    [taken] = await store.enqueue([a_job(unique_key="k")])
    assert taken.is_duplicate
    clock.advance(seconds=1)
    assert await store.stop([(held.id, held.token, Run(log_excerpt="bye", cpu_time_ms=5, memory_peak_mb=6))])
    [row] = await store.list_executions(held.id)
    assert (row.log_excerpt, row.cpu_time_ms, row.memory_peak_mb, row.stopped_at) == ("bye", 5, 6, clock.now())
    [free] = await store.enqueue([a_job(unique_key="k")])
    assert not free.is_duplicate
    assert await store.stop([(held.id, held.token, Run())]) == []


async def test_a_cancelled_run_that_is_never_heard_of_again_is_let_go_at_expiry(store: Store, clock: FakeClock) -> None:
    held = await running(store, a_job(unique_key="k"))
    await store.cancel([held.id])
    clock.advance(seconds=31)
    assert await store.reclaim() == [held.id]
    job = await store.get(held.id)
    assert (job.state, job.token, job.unique_slot) == (JobState.CANCELLED, None, None)


async def test_cancel_of_a_prefetched_job_gives_its_numbers_back(store: Store) -> None:
    held = await running(store, started=False)
    job = (await store.cancel([held.id])).one()
    assert (job.attempt, job.executions) == (0, 0)
    assert await store.list_executions(held.id) == []


async def test_a_prefetched_job_that_had_started_after_all_leaves_its_execution(store: Store, clock: FakeClock) -> None:
    held = await running(store, started=False)
    started_at = clock.advance(seconds=1)
    clock.advance(seconds=1)
    await store.cancel([held.id])
    await store.stop([(held.id, held.token, Run(started_at, log_excerpt="x"))])
    job = await store.get(held.id)
    [row] = await store.list_executions(held.id)
    assert (job.attempt, job.executions, row.number, row.started_at) == (1, 1, 1, started_at)


async def test_stop_run_ends_the_run_and_the_cadence_goes_on(store: Store, clock: FakeClock) -> None:
    held = await running(store, a_job(recurrence=recurring(), run_at=clock.now()))
    (await store.stop_run([held.id])).one()
    [told] = await store.renew([(held.id, held.token, None)], timedelta(seconds=30))
    assert (told.should_stop, told.is_cancelled) == (True, False)
    assert await end(store, clock, held, Stopped())
    job = await store.get(held.id)
    [row] = await store.list_executions(held.id)
    assert (job.state, job.wait_reason) == (JobState.SCHEDULED, WaitReason.RECURRENCE)
    assert (row.status, row.reason) == (RunStatus.CANCELLED, RunReason.STOPPED)


async def test_a_result_that_came_before_the_stop_counts(store: Store, clock: FakeClock) -> None:
    held = await running(store, a_job(recurrence=recurring(), run_at=clock.now()))
    await store.stop_run([held.id])
    assert await end(store, clock, held)
    [row] = await store.list_executions(held.id)
    assert row.status is RunStatus.COMPLETED
    assert not (await store.get(held.id)).stop_requested


async def test_a_stopped_run_whose_worker_died_counts_as_stopped(store: Store, clock: FakeClock) -> None:
    held = await running(store, a_job(recurrence=recurring(), run_at=clock.now()))
    await store.stop_run([held.id])
    clock.advance(seconds=31)
    await store.reclaim()
    [row] = await store.list_executions(held.id)
    assert row.reason is RunReason.STOPPED


async def test_stop_of_a_one_shot_is_refused(store: Store) -> None:
    held = await running(store)
    with pytest.raises(InvalidTransition, match="running"):
        (await store.stop_run([held.id])).one()


async def test_pause_and_resume_count_anew(store: Store, clock: FakeClock) -> None:
    job_id = await enqueue_one(store, a_job(recurrence=recurring(), delay=timedelta(minutes=30)))
    job = (await store.pause([job_id])).one()
    assert (job.state, job.paused_at, job.is_enabled) == (JobState.PAUSED, clock.now(), False)
    clock.advance(hours=5)
    job = (await store.resume([job_id])).one()
    assert (job.state, job.run_at, job.slot_at) == (
        JobState.SCHEDULED,
        clock.now() + timedelta(minutes=30),
        clock.now() + timedelta(minutes=30),
    )
    with pytest.raises(InvalidTransition, match=r"scheduled → scheduled"):
        (await store.resume([job_id])).one()


async def test_a_resumed_one_shot_keeps_its_time(store: Store) -> None:
    job_id = await enqueue_one(store, a_job(delay=timedelta(hours=1)))
    before = (await store.pause([job_id])).one().run_at
    assert (await store.resume([job_id])).one().run_at == before


async def test_pause_of_a_one_shot_that_is_due_is_refused(store: Store) -> None:
    job_id = await enqueue_one(store)
    with pytest.raises(InvalidTransition, match=r"pending → paused"):
        (await store.pause([job_id])).one()


async def test_pause_of_a_running_job_is_refused(store: Store, clock: FakeClock) -> None:
    held = await running(store, a_job(recurrence=recurring(), run_at=clock.now()))
    with pytest.raises(InvalidTransition, match=r"running → paused"):
        (await store.pause([held.id])).one()


async def test_disable_keeps_the_time_and_enable_makes_an_overdue_job_due_at_once(store: Store, clock: FakeClock) -> None:
    job_id = await enqueue_one(store, a_job(recurrence=recurring(), delay=timedelta(minutes=30)))
    planned = (await store.get(job_id)).run_at
    assert not (await store.disable([job_id])).one().is_enabled
    assert (await store.disable([job_id])).changed
    clock.advance(hours=5)
    await due(store)
    assert await claim(store) == []
    assert (await store.enable([job_id])).one().run_at == planned
    assert (await store.enable([job_id])).changed
    await due(store)
    assert len(await claim(store)) == 1


async def test_disable_during_a_run_ends_paused(store: Store, clock: FakeClock) -> None:
    held = await running(store, a_job(recurrence=recurring(), run_at=clock.now()))
    job = (await store.disable([held.id])).one()
    assert (job.state, job.is_enabled) == (JobState.RUNNING, False)
    await end(store, clock, held)
    job = await store.get(held.id)
    assert (job.state, job.held, job.wait_reason) == (JobState.PAUSED, False, WaitReason.RECURRENCE)
    assert job.run_at == clock.now() + timedelta(minutes=30)


async def test_enable_during_the_same_run_takes_it_back(store: Store, clock: FakeClock) -> None:
    held = await running(store, a_job(recurrence=recurring(), run_at=clock.now()))
    await store.disable([held.id])
    await store.enable([held.id])
    await end(store, clock, held)
    assert (await store.get(held.id)).state is JobState.SCHEDULED


async def test_run_now_runs_a_waiting_job_and_leaves_its_slot(store: Store, clock: FakeClock) -> None:
    rule = Recurrence(cadence=Cron("@hourly"))
    job_id = await enqueue_one(store, a_job(recurrence=rule, run_at=rule.first(clock.now())))
    slot = (await store.get(job_id)).slot_at
    job = (await store.run_now([job_id])).one()
    assert (job.state, job.wait_reason, job.slot_at) == (JobState.PENDING, WaitReason.OPERATOR, slot)
    held = await claim_one(store)
    await end(store, clock, held)
    assert (await store.get(job_id)).slot_at == slot


async def test_run_now_during_a_run_runs_once_more(store: Store, clock: FakeClock) -> None:
    held = await running(store)
    await store.run_now([held.id])
    await store.run_now([held.id])
    await end(store, clock, held)
    job = await store.get(held.id)
    assert (job.state, job.wait_reason, job.attempt) == (JobState.SCHEDULED, WaitReason.OPERATOR, 0)
    await due(store)
    await end(store, clock, await claim_one(store))
    assert (await store.get(held.id)).state is JobState.COMPLETED
    assert len(await store.list_executions(held.id)) == 2


async def test_run_now_of_a_paused_job_leaves_it_paused_after(store: Store, clock: FakeClock) -> None:
    job_id = await enqueue_one(store, a_job(recurrence=recurring(), delay=timedelta(hours=1)))
    await store.pause([job_id])
    job = (await store.run_now([job_id])).one()
    assert (job.state, job.is_enabled) == (JobState.SCHEDULED, False)
    await due(store)
    await end(store, clock, await claim_one(store))
    assert (await store.get(job_id)).state is JobState.PAUSED


async def test_run_now_brings_a_retry_forward_without_a_fresh_start(store: Store, clock: FakeClock) -> None:
    held = await running(store)
    await end(store, clock, held, failure())
    await store.run_now([held.id])
    again = await claim_one(store)
    assert again.attempt == 2


async def test_failed_for_good_beats_held_and_rerun(store: Store, clock: FakeClock) -> None:
    held = await running(store, a_job(max_attempts=1))
    await store.run_now([held.id])
    await store.disable([held.id])
    await end(store, clock, held, failure())
    assert (await store.get(held.id)).state is JobState.FAILED


async def test_held_beats_rerun_and_keeps_it_due(store: Store, clock: FakeClock) -> None:
    held = await running(store, a_job(recurrence=recurring(), run_at=clock.now()))
    await store.run_now([held.id])
    await store.disable([held.id])
    asked = clock.now()
    clock.advance(minutes=1)
    await end(store, clock, held)
    job = await store.get(held.id)
    assert (job.state, job.run_at) == (JobState.PAUSED, asked)


async def test_rerun_beats_retry(store: Store, clock: FakeClock) -> None:
    held = await running(store)
    await store.run_now([held.id])
    await end(store, clock, held, failure())
    job = await store.get(held.id)
    assert (job.state, job.run_at, job.attempt) == (JobState.SCHEDULED, clock.now(), 1)


async def test_retry_of_a_failed_job_is_a_fresh_start(store: Store, clock: FakeClock) -> None:
    dead = await fail_for_good(store, clock)
    job = (await store.retry([dead.id])).one()
    [letter] = await store.list_dead_letters(dead.id)
    assert (job.state, job.wait_reason, job.attempt, job.closed_at) == (JobState.PENDING, WaitReason.OPERATOR, 0, None)
    assert letter.closed_reason == "retried"
    again = await claim_one(store)
    assert (again.attempt, again.execution) == (1, 2)


async def test_retry_of_a_job_that_waits_for_a_retry(store: Store, clock: FakeClock) -> None:
    held = await running(store)
    await end(store, clock, held, failure())
    job = (await store.retry([held.id])).one()
    assert (job.state, job.attempt) == (JobState.PENDING, 0)


@pytest.mark.parametrize("delay", [None, timedelta(hours=1)])
async def test_retry_of_a_job_that_has_not_failed_is_refused(store: Store, delay: timedelta | None) -> None:
    job_id = await enqueue_one(store, a_job(delay=delay))
    with pytest.raises(InvalidTransition, match="→ pending"):
        (await store.retry([job_id])).one()


async def test_retry_into_a_taken_key_names_the_holder(store: Store, clock: FakeClock) -> None:
    dead = await fail_for_good(store, clock, a_job(unique_key="k", max_attempts=1))
    holder = await enqueue_one(store, a_job(unique_key="k"))
    with pytest.raises(SlotTaken, match=f"job {holder}"):
        await store.retry([dead.id])
    assert (await store.get(dead.id)).state is JobState.FAILED


async def test_bulk_retry_brings_back_one_job_for_each_key(store: Store, clock: FakeClock) -> None:
    twins = [await fail_for_good(store, clock, a_job(unique_key="k", max_attempts=1)) for _ in range(2)]
    free = await fail_for_good(store, clock)
    moved = await store.retry([twins[0].id, twins[1].id, free.id])
    assert {job.id for job in moved.changed} == {twins[0].id, free.id}
    assert [job.id for job in moved.refused] == [twins[1].id]


async def test_editing_payload_and_metadata_never_moves_the_run(store: Store, clock: FakeClock) -> None:
    job_id = await enqueue_one(store, a_job(recurrence=recurring(), delay=timedelta(minutes=1)))
    clock.advance(minutes=5)
    before = await store.get(job_id)
    changes = Edit(payload='{"n":2}', metadata='{"m":1}', priority=8, max_attempts=7, retry=RetrySpec(profile="crawl"))
    job = (await store.edit(job_id, changes)).one()
    assert (job.run_at, job.slot_at, job.state) == (before.run_at, before.slot_at, before.state)
    assert (job.payload_json, job.metadata_json, job.priority, job.base_priority) == ('{"n":2}', '{"m":1}', 8, 8)
    assert (job.max_attempts, job.retry) == (7, "crawl")
    await due(store)
    assert len(await claim(store)) == 1


async def test_a_new_cadence_moves_the_next_run(store: Store, clock: FakeClock) -> None:
    job_id = await enqueue_one(store, a_job(recurrence=recurring(), run_at=clock.now()))
    rule = recurring(timedelta(hours=2))
    next_at = rule.first(clock.now())
    job = (await store.edit(job_id, Edit(recurrence=rule, next_at=next_at))).one()
    assert (job.state, job.run_at, job.slot_at, job.recurrence) == (JobState.SCHEDULED, next_at, next_at, rule)


async def test_a_new_cadence_during_a_run_counts_when_it_ends(store: Store, clock: FakeClock) -> None:
    held = await running(store, a_job(recurrence=recurring(), run_at=clock.now()))
    rule = recurring(timedelta(hours=2))
    next_at = rule.first(clock.now())
    await store.edit(held.id, Edit(recurrence=rule, next_at=next_at))
    clock.advance(minutes=1)
    await end(store, clock, held)
    job = await store.get(held.id)
    assert (job.run_at, job.slot_at, job.wait_reason) == (next_at, next_at, WaitReason.RECURRENCE)


async def test_edit_of_a_finished_job_is_refused(store: Store, clock: FakeClock) -> None:
    held = await running(store)
    await end(store, clock, held)
    with pytest.raises(InvalidTransition, match="completed"):
        (await store.edit(held.id, Edit(priority=1))).one()


async def test_max_attempts_below_what_was_used_is_refused(store: Store, clock: FakeClock) -> None:
    held = await running(store, a_job(max_attempts=5))
    await end(store, clock, held, failure())
    with pytest.raises(InvalidInput, match="max_attempts"):
        await store.edit(held.id, Edit(max_attempts=1))
    assert (await store.edit(held.id, Edit(max_attempts=2))).one().max_attempts == 2


async def test_a_cadence_for_a_one_shot_is_refused(store: Store, clock: FakeClock) -> None:
    job_id = await enqueue_one(store)
    with pytest.raises(InvalidInput, match="not recurring"):
        await store.edit(job_id, Edit(recurrence=recurring(), next_at=clock.now()))


async def test_unknown_jobs_are_named(store: Store) -> None:
    for moved in (
        await store.cancel([404]),
        await store.run_now([404]),
        await store.edit(404, Edit(priority=1)),
    ):
        with pytest.raises(JobNotFound, match="404"):
            moved.one()
    with pytest.raises(JobNotFound, match="404"):
        await store.get(404)


async def test_bulk_says_what_changed_and_what_did_not(store: Store, clock: FakeClock) -> None:
    waiting = await enqueue_one(store)
    done = await running(store, a_job("b", priority=1))
    await end(store, clock, done)
    moved = await store.cancel([waiting, done.id, 404])
    assert [job.id for job in moved.changed] == [waiting]
    assert [job.id for job in moved.refused] == [done.id]
    assert moved.missing == (404,)


async def test_a_retry_that_comes_back_takes_its_pending_key_again(store: Store, clock: FakeClock) -> None:
    held = await pending_slot(store)
    await end(store, clock, held, failure())
    [again] = await store.enqueue([a_job(unique_key="k", unique_scope="pending")])
    assert again == (held.id, True)


async def test_a_start_reported_after_the_cancel_still_leaves_one_execution(store: Store, clock: FakeClock) -> None:
    held = await running(store, started=False)
    started_at = clock.advance(seconds=1)
    await store.cancel([held.id])
    await store.renew([(held.id, held.token, started_at)], timedelta(seconds=30))
    assert (await store.get(held.id)).started_at is None
    await store.stop([(held.id, held.token, Run(started_at))])
    [row] = await store.list_executions(held.id)
    assert (row.number, row.started_at) == (1, started_at)


async def test_a_second_run_stopped_late_ends_after_it_began(store: Store, clock: FakeClock) -> None:
    await end(store, clock, await running(store), failure())
    clock.advance(minutes=1)
    await due(store)
    held = await claim_one(store, started=False)
    started_at = clock.advance(seconds=1)
    await store.cancel([held.id])
    await store.stop([(held.id, held.token, Run(started_at))])
    job = await store.get(held.id)
    assert (job.started_at, job.finished_at) == (started_at, clock.now())


async def test_a_new_cadence_does_not_swallow_a_run_now(store: Store, clock: FakeClock) -> None:
    rule = recurring(timedelta(hours=5))
    for order in (0, 1):
        held = await running(store, a_job(f"order-{order}", recurrence=recurring(), run_at=clock.now()))
        asked = clock.now()
        edit = Edit(recurrence=rule, next_at=rule.first(clock.now()))
        if order:
            await store.run_now([held.id])
        await store.edit(held.id, edit)
        if not order:
            await store.run_now([held.id])
        await end(store, clock, held)
        job = await store.get(held.id)
        assert (job.run_at, job.slot_at) == (asked, rule.first(asked))


async def test_texts_of_operators_and_workers_are_mended(store: Store) -> None:
    held = await running(store)
    await store.progress(held.id, held.token, cursor="a\0b", message="\ud800")
    await store.cancel([held.id], "why\0")
    job = await store.get(held.id)
    [row] = await store.list_executions(held.id)
    assert (job.last_cursor, job.progress_message, row.error) == ("a\ufffdb", "\ufffd", "why\ufffd")


async def test_numbers_no_job_can_have_are_missing(store: Store) -> None:
    assert (await store.cancel([2**70, -1, 0])).missing == (2**70, -1, 0)
    assert (await store.edit(2**70, Edit(priority=1))).missing == (2**70,)
    assert await store.list_executions(2**70) == []
    assert await store.list_dead_letters(2**70) == []
    assert await store.count_executions(2**70) == 0


async def test_a_move_of_numbers_no_job_can_have_is_audited(store: Store) -> None:
    watched = store.acting(Actor("ann"))
    job_id = await enqueue_one(store)
    assert len((await watched.cancel([job_id, 2**70])).changed) == 1
    [line] = await store.audit.list()
    assert line.details == {"ids": [job_id], "changed": 1, "refused": 0, "missing": 1}


async def test_bulk_retry_prefers_the_job_that_holds_its_key(store: Store, clock: FakeClock) -> None:
    dead = await fail_for_good(store, clock, a_job(unique_key="k", max_attempts=1))
    held = await running(store, a_job(unique_key="k", max_attempts=3))
    await end(store, clock, held, failure())
    moved = await store.retry([dead.id, held.id])
    assert [job.id for job in moved.changed] == [held.id]


async def test_a_limit_lowered_during_a_run_leaves_room_for_what_follows(store: Store) -> None:
    held = await running(store, a_job(max_attempts=3))
    with pytest.raises(InvalidInput, match="max_attempts"):
        await store.edit(held.id, Edit(max_attempts=1))
    for limit in (3, 2):
        assert (await store.edit(held.id, Edit(max_attempts=limit))).one().max_attempts == limit


async def test_a_job_that_goes_on_has_no_reason_for_being_done(store: Store, clock: FakeClock) -> None:
    held = await running(store, a_job(recurrence=recurring(max_runs=1), run_at=clock.now()))
    await store.run_now([held.id])
    await end(store, clock, held)
    job = await store.get(held.id)
    assert (job.state, job.done_reason) == (JobState.SCHEDULED, None)
