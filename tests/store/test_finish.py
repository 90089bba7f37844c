"""Finish: what becomes of a run, in batches, whatever it carries."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tests.store.builders import (
    a_job,
    claim,
    due,
    end,
    ending,
    enqueue_one,
    fail_for_good,
    failure,
    pending_slot,
    recurring,
    running,
)
from tests.support.raw import execute
from windlass.core.cadence import ByHandler, OnExhausted, Recurrence
from windlass.core.job import JobState, RunReason, RunStatus, WaitReason
from windlass.core.outcome import Cancelled, Failure, Raised, Released, Returned, Run, Snoozed
from windlass.store import Store
from windlass.testing import FakeClock


async def test_a_completed_run_leaves_job_and_execution(store: Store, clock: FakeClock) -> None:
    held = await running(store, a_job(run_at=clock.now() - timedelta(seconds=3)))
    started_at = held.claimed_at
    clock.advance(seconds=2)
    run = Run(started_at, clock.now(), "line", 12, 34, 5, 4, '{"m":1}')
    await end(store, clock, held, Returned('{"ok":true}'), run=run)
    job = await store.get(held.id)
    [row] = await store.list_executions(held.id)
    assert (job.state, job.closed_at, job.wait_reason) == (JobState.COMPLETED, clock.now(), None)
    assert (job.started_at, job.finished_at) == (started_at, clock.now())
    assert (row.number, row.attempt, row.status, row.reason) == (1, 1, RunStatus.COMPLETED, None)
    assert (row.duration_ms, row.wait_ms, row.worker) == (2000, 3000, "worker-1")
    assert (row.log_excerpt, row.cpu_time_ms, row.memory_peak_mb) == ("line", 12, 34)
    assert (row.items_crawled, row.items_indexed, row.metadata_json, row.result_json) == (5, 4, '{"m":1}', '{"ok":true}')


async def test_a_failure_waits_and_keeps_its_error(store: Store, clock: FakeClock) -> None:
    held = await running(store)
    await end(store, clock, held, Raised(Failure("boom", "ValueError", "trace")))
    job = await store.get(held.id)
    [row] = await store.list_executions(held.id)
    assert (job.state, job.wait_reason, job.attempt) == (JobState.SCHEDULED, WaitReason.RETRY, 1)
    assert job.run_at == clock.now() + timedelta(seconds=1)
    assert (job.last_error, job.last_error_at, job.consecutive_failures) == ("boom", clock.now(), 1)
    assert (row.status, row.reason, row.error, row.error_type) == (RunStatus.FAILED, RunReason.ERROR, "boom", "ValueError")
    assert row.stack_trace == "trace"


async def test_attempts_used_up_leave_a_dead_letter_with_the_whole_job(store: Store, clock: FakeClock) -> None:
    given = a_job("email", payload='{"to":"ann@example.org"}', max_attempts=1, correlation_id="c-1", created_by="api")
    job = await fail_for_good(store, clock, given)
    [letter] = await store.list_dead_letters(job.id)
    original = letter.original_job
    assert job.state is JobState.FAILED
    assert (letter.error, letter.task, letter.died_at, letter.deaths) == ("boom", "email", clock.now(), 1)
    assert (original["id"], original["type"], original["payload"]) == (job.id, "email", {"to": "ann@example.org"})
    assert (original["correlation_id"], original["created_by"], original["attempts"]) == ("c-1", "api", 1)
    assert original["created_at"] == clock.now().strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    assert (letter.details or {})["type"] == "RuntimeError"


async def test_snooze_and_release_use_no_attempt_and_leave_their_execution(store: Store, clock: FakeClock) -> None:
    held = await running(store)
    await end(store, clock, held, Snoozed(timedelta(minutes=5)))
    job = await store.get(held.id)
    assert (job.state, job.wait_reason, job.attempt, job.executions) == (JobState.SCHEDULED, WaitReason.SNOOZE, 0, 1)
    assert job.run_at == clock.now() + timedelta(minutes=5)
    clock.advance(minutes=5)
    await due(store)
    [again] = await claim(store)
    await end(store, clock, again, Released(has_started=True))
    job = await store.get(held.id)
    assert (job.wait_reason, job.attempt, job.executions) == (WaitReason.RELEASED, 0, 2)
    reasons = [(row.status, row.reason) for row in await store.list_executions(held.id)]
    assert reasons == [(RunStatus.CANCELLED, RunReason.RELEASED), (RunStatus.CANCELLED, RunReason.SNOOZED)]


async def test_a_handler_may_cancel_its_job(store: Store, clock: FakeClock) -> None:
    held = await running(store)
    await end(store, clock, held, Cancelled("not needed"))
    job = await store.get(held.id)
    assert (job.state, job.done_reason) == (JobState.CANCELLED, "not needed")


async def test_finish_returns_to_the_base_priority(store: Store, clock: FakeClock) -> None:
    job_id = await enqueue_one(store, a_job(priority=3))
    await execute(store, "update windlass_jobs set priority = 60")
    [held] = await claim(store)
    await end(store, clock, held, failure())
    assert (await store.get(job_id)).priority == 3


async def test_a_recurring_job_comes_back_in_the_same_row(store: Store, clock: FakeClock) -> None:
    held = await running(store, a_job(recurrence=recurring(), run_at=clock.now()))
    clock.advance(minutes=1)
    await end(store, clock, held)
    job = await store.get(held.id)
    next_at = clock.now() + timedelta(minutes=30)
    assert (job.state, job.wait_reason, job.run_at, job.slot_at) == (
        JobState.SCHEDULED,
        WaitReason.RECURRENCE,
        next_at,
        next_at,
    )
    assert (job.attempt, job.executions, job.completed_runs) == (0, 1, 1)


async def test_a_recurring_job_ends_after_its_last_run(store: Store, clock: FakeClock) -> None:
    held = await running(store, a_job(recurrence=recurring(max_runs=1), run_at=clock.now()))
    await end(store, clock, held)
    job = await store.get(held.id)
    assert (job.state, job.done_reason) == (JobState.COMPLETED, "ended")


async def test_a_death_of_a_recurring_job_has_one_letter_that_a_success_closes(store: Store, clock: FakeClock) -> None:
    held = await running(store, a_job(recurrence=recurring(), run_at=clock.now(), max_attempts=1))
    for deaths in (1, 2):
        await end(store, clock, held, failure())
        [letter] = await store.list_dead_letters(held.id)
        job = await store.get(held.id)
        assert (letter.deaths, letter.closed_at) == (deaths, None)
        assert (job.state, job.attempt, job.consecutive_failures) == (JobState.SCHEDULED, 0, deaths)
        clock.advance(hours=1)
        await due(store)
        [held] = await claim(store)
    await end(store, clock, held)
    [letter] = await store.list_dead_letters(held.id)
    assert (letter.closed_at, letter.closed_reason) == (clock.now(), "succeeded")
    assert (await store.get(held.id)).consecutive_failures == 0


async def test_face_001s_recurring_job_fails_for_good(store: Store, clock: FakeClock) -> None:
    rule = recurring(on_exhausted=OnExhausted.FAIL)
    job = await fail_for_good(store, clock, a_job(recurrence=rule, run_at=clock.now(), max_attempts=1))
    assert job.state is JobState.FAILED


async def test_a_job_whose_handler_picks_the_time_never_dies(store: Store, clock: FakeClock) -> None:
    held = await running(store, a_job(recurrence=Recurrence(cadence=ByHandler()), max_attempts=1))
    waits = []
    for _ in range(4):
        await end(store, clock, held, failure())
        job = await store.get(held.id)
        waits.append((job.run_at - clock.now()).total_seconds())
        clock.advance(hours=1)
        await due(store)
        [held] = await claim(store)
    chosen = clock.now() + timedelta(days=2)
    await end(store, clock, held, Returned(run_again_at=chosen))
    job = await store.get(held.id)
    assert waits == [1, 2, 4, 8]
    assert (job.run_at, job.slot_at, job.consecutive_failures) == (chosen, chosen, 0)


async def test_a_batch_of_mixed_endings_is_each_its_own(store: Store, clock: FakeClock) -> None:
    await store.enqueue([a_job(max_attempts=1 + place % 2) for place in range(40)])
    batch = await claim(store, 40)
    outcomes = [Returned(f'{{"n":{place}}}') if place % 3 else failure(f"boom {place}") for place in range(40)]
    endings = [ending(job, clock.now(), outcome) for job, outcome in zip(batch, outcomes, strict=True)]
    accepted = await store.finish(endings)
    for place, job in enumerate(batch):
        expected = JobState.COMPLETED if place % 3 else JobState.SCHEDULED if place % 2 else JobState.FAILED
        assert accepted[job.id] is expected
        [row] = await store.list_executions(job.id)
        assert row.result_json == (f'{{"n":{place}}}' if place % 3 else None)
        assert row.error == (None if place % 3 else f"boom {place}")


async def test_one_poisoned_row_does_not_hold_back_the_others(store: Store, clock: FakeClock) -> None:
    await store.enqueue([a_job(max_attempts=3) for _ in range(500)])
    batch = await claim(store, 500)
    endings = [ending(job, clock.now()) for job in batch]
    endings[100] = endings[100]._replace(result='{"not json')
    accepted = await store.finish(endings)
    assert len(accepted) == 500
    assert set(accepted.values()) == {JobState.COMPLETED}
    [row] = await store.list_executions(batch[100].id)
    assert (row.status, row.result_json) == (RunStatus.COMPLETED, None)


async def test_a_poisoned_decision_ends_as_a_failure_that_says_so(store: Store, clock: FakeClock) -> None:
    await store.enqueue([a_job() for _ in range(5)])
    batch = await claim(store)
    endings = [ending(job, clock.now()) for job in batch]
    endings[2] = endings[2]._replace(attempt=-5)
    accepted = await store.finish(endings)
    assert accepted[batch[2].id] is JobState.FAILED
    assert list(accepted.values()).count(JobState.COMPLETED) == 4
    [letter] = await store.list_dead_letters(batch[2].id)
    assert "refused" in letter.error


async def test_text_that_no_database_keeps_is_mended(store: Store, clock: FakeClock) -> None:
    held = await running(store, a_job(max_attempts=1))
    await end(store, clock, held, Raised(Failure("a\0b\ud800c" + "x" * 100_000, "Bad\0", "t\0" * 50_000)))
    [row] = await store.list_executions(held.id)
    assert row.error is not None
    assert row.error.startswith("a�b�c")
    assert len(row.error) <= 4000


async def test_raw_bad_text_in_a_finish_is_stripped(store: Store, clock: FakeClock) -> None:
    held = await running(store)
    bad = ending(held, clock.now(), failure())._replace(failure=Failure("a\0b", "X\ud800"))
    assert await store.finish([bad]) == {held.id: JobState.SCHEDULED}
    assert (await store.get(held.id)).last_error == "a?b"


async def test_a_retry_whose_key_was_taken_ends_superseded_and_harms_nobody(store: Store, clock: FakeClock) -> None:
    other = await running(store, a_job("other"))
    first = await pending_slot(store)
    second = await pending_slot(store)
    rival = await enqueue_one(store, a_job(unique_key="k", unique_scope="pending"))
    endings = [ending(job, clock.now(), failure()) for job in (first, second, other)]
    accepted = await store.finish(endings)
    assert accepted == {first.id: JobState.CANCELLED, second.id: JobState.CANCELLED, other.id: JobState.SCHEDULED}
    job = await store.get(first.id)
    assert (job.done_reason, job.unique_slot) == ("superseded", None)
    assert (await store.get(rival)).state is JobState.PENDING


async def test_of_two_that_come_back_in_one_batch_the_first_gets_the_key(store: Store, clock: FakeClock) -> None:
    first = await pending_slot(store)
    second = await pending_slot(store)
    third = await pending_slot(store)
    endings = [ending(third, clock.now()), ending(second, clock.now(), failure()), ending(first, clock.now(), failure())]
    accepted = await store.finish(endings)
    assert accepted == {
        third.id: JobState.COMPLETED,
        second.id: JobState.CANCELLED,
        first.id: JobState.SCHEDULED,
    }
    assert (await store.get(first.id)).unique_slot == "k"


async def test_a_lost_lease_whose_key_was_taken_ends_superseded(store: Store, clock: FakeClock) -> None:
    held = await pending_slot(store)
    await enqueue_one(store, a_job(unique_key="k", unique_scope="pending"))
    clock.advance(seconds=31)
    await store.reclaim()
    job = await store.get(held.id)
    assert (job.state, job.done_reason) == (JobState.CANCELLED, "superseded")
    [row] = await store.list_executions(held.id)
    assert row.reason is RunReason.LEASE_EXPIRED


class _Odd(int):
    def __format__(self, spec: str) -> str:
        return '1,"state":"failed"'


@pytest.mark.parametrize("value", ['1,"state":"failed","attempt":9', float("nan"), 1.5, [1], _Odd(7), True])
async def test_what_a_handler_counts_cannot_change_the_record(store: Store, clock: FakeClock, value: Any) -> None:
    held = await running(store)
    run = Run(held.claimed_at, clock.now(), items_crawled=value, items_indexed=3)
    assert await end(store, clock, held, Returned(), run=run)
    job = await store.get(held.id)
    [row] = await store.list_executions(held.id)
    expected = int(value) if isinstance(value, int) else None
    assert (job.state, job.attempt, row.items_crawled, row.items_indexed) == (JobState.COMPLETED, 1, expected, 3)
