"""The reports of pull workers: everything one asks for, or nothing, and once."""

from __future__ import annotations

import asyncio
from dataclasses import fields
from datetime import timedelta
from typing import Any

import pytest

from tests.store.builders import LEASE, a_job, a_lease, all_jobs, claim_one, due, end, failure, recurring, running
from tests.store.rivals import rivals
from tests.support.raw import execute
from windlass.core.job import Claimed, JobState, NewJob, RunReason, RunStatus, WaitReason
from windlass.core.outcome import Run
from windlass.core.payload import decode
from windlass.core.report import Report, ReportAnswer
from windlass.core.retry import RetrySpec
from windlass.errors import InvalidInput, InvalidPayload, JobNotFound, LeaseLost, TokenNeeded
from windlass.store import Store
from windlass.testing import FakeClock

WORKER = "worker-1"


def phones(*numbers: object) -> list[dict[str, Any]]:
    return [{"phone": str(number)} for number in numbers]


def a_pull(**options: Any) -> NewJob:
    """Describe a job for pull workers whose retries have no chance in them."""
    return a_job("leads", lane="pull", **{"retry": RetrySpec(profile="pull", jitter=0.0)} | options)


def a_report(job: Claimed, **said: Any) -> Report:
    given: dict[str, Any] = {"job_id": job.id, "worker": job.worker, "token": job.token}
    return Report(**given | said)


async def again(store: Store, clock: FakeClock, held: Claimed, worker: str = WORKER) -> Claimed:
    """Let the lease end and give the job to somebody."""
    clock.advance(seconds=31)
    await store.reclaim()
    await due(store)
    taken = await claim_one(store, worker=worker)
    assert taken.id == held.id
    return taken


async def test_a_report_keeps_items_counts_cursor_log_and_lease(store: Store, clock: FakeClock) -> None:
    held = await running(store, a_pull(target_count=10))
    clock.advance(seconds=5)
    answer = await store.report(a_report(held, items=phones(1, 2, 2), cursor="page 2", log="two new"))
    assert answer == ReportAnswer(
        state=JobState.RUNNING, added=2, duplicates=1, lease_expires_at=clock.now() + timedelta(seconds=120)
    )
    job = await store.get(held.id)
    assert (job.progress_count, job.result_count, job.last_cursor, job.progress_message) == (3, 2, "page 2", "two new")
    assert (job.lease_expires_at, job.last_progress_at) == (answer.lease_expires_at, clock.now())
    await store.report(a_report(held))
    assert (await store.get(held.id)).last_cursor == "page 2"


@pytest.mark.parametrize(("asked", "granted"), [(None, 120), (0, 60), (59, 60), (300, 300), (601, 600), (10**9, 600)])
async def test_the_lease_is_extended_within_bounds(store: Store, clock: FakeClock, asked: int | None, granted: int) -> None:
    held = await running(store, a_pull())
    extend = None if asked is None else timedelta(seconds=asked)
    answer = await store.report(a_report(held, extend=extend))
    assert answer.lease_expires_at == clock.now() + timedelta(seconds=granted)
    told = await store.heartbeat(held.id, held.token, extend)
    assert (told.lease_expires_at, told.should_stop) == (answer.lease_expires_at, False)


async def test_a_report_never_shortens_a_lease(store: Store, clock: FakeClock) -> None:
    held = await running(store, a_pull())
    await store.report(a_report(held, extend=timedelta(seconds=600)))
    answer = await store.report(a_report(held, extend=timedelta(seconds=60)))
    assert answer.lease_expires_at == clock.now() + timedelta(seconds=600)


async def test_an_expired_lease_that_nobody_took_may_still_be_reported_on(store: Store, clock: FakeClock) -> None:
    held = await running(store, a_pull())
    clock.advance(seconds=31)
    answer = await store.report(a_report(held, items=phones(1)))
    assert (answer.state, answer.lease_expires_at) == (JobState.RUNNING, clock.now() + timedelta(seconds=120))
    assert await store.reclaim() == []


@pytest.mark.parametrize(
    ("target", "said", "reason"),
    [
        (None, {"is_done": True}, "worker_done"),
        (None, {"is_done": True, "items": phones(1, 2, 3)}, "worker_done"),
        (3, {"items": phones(1, 2, 3)}, "target_reached"),
        (2, {"items": phones(1, 2, 3)}, "target_reached"),
        (3, {"is_done": True, "items": phones(1, 2, 3)}, "target_reached"),
        (4, {"is_done": True, "items": phones(1, 2, 3)}, "no_more_results"),
        (1, {"is_done": True}, "no_more_results"),
    ],
)
async def test_a_job_is_done_when_its_worker_says_so_or_its_target_is_reached(
    store: Store, clock: FakeClock, *, target: int | None, said: dict[str, Any], reason: str
) -> None:
    held = await running(store, a_pull(target_count=target))
    clock.advance(seconds=5)
    answer = await store.report(a_report(held, log="bye", **said))
    assert (answer.state, answer.is_done, answer.done_reason) == (JobState.COMPLETED, True, reason)
    assert (answer.added, answer.lease_expires_at) == (len(said.get("items", ())), None)
    job = await store.get(held.id)
    assert (job.state, job.done_reason, job.result_count, job.token) == (JobState.COMPLETED, reason, answer.added, None)
    [row] = await store.list_executions(held.id)
    assert (row.status, row.log_excerpt, row.worker, row.started_at) == (RunStatus.COMPLETED, "bye", WORKER, held.claimed_at)
    assert row.finished_at == clock.now()


async def test_only_new_items_count_towards_the_target(store: Store) -> None:
    held = await running(store, a_pull(target_count=3))
    await store.report(a_report(held, items=phones(1, 2)))
    answer = await store.report(a_report(held, items=phones(1, 2)))
    assert (answer.is_done, answer.added, answer.duplicates) == (False, 0, 2)
    assert (await store.report(a_report(held, items=phones(3)))).done_reason == "target_reached"


async def test_an_error_backs_off_and_keeps_the_items_of_its_report(store: Store, clock: FakeClock) -> None:
    held = await running(store, a_pull(target_count=9))
    answer = await store.report(a_report(held, items=phones(1), cursor="c", error="blocked", log="tail"))
    assert (answer.state, answer.is_done, answer.added, answer.lease_expires_at) == (JobState.SCHEDULED, False, 1, None)
    job = await store.get(held.id)
    assert (job.wait_reason, job.last_error, job.result_count, job.last_cursor) == (WaitReason.RETRY, "blocked", 1, "c")
    assert job.run_at == clock.now() + timedelta(seconds=30)
    [row] = await store.list_executions(held.id)
    assert (row.status, row.reason, row.error, row.log_excerpt) == (RunStatus.FAILED, RunReason.ERROR, "blocked", "tail")
    clock.advance(seconds=30)
    await due(store)
    taken = await claim_one(store)
    assert (taken.last_cursor, taken.result_count, taken.attempt) == ("c", 1, 2)


async def test_the_last_error_is_a_dead_letter(store: Store) -> None:
    held = await running(store, a_pull(max_attempts=1))
    answer = await store.report(a_report(held, error="blocked", is_done=True))
    assert (answer.state, answer.is_done) == (JobState.FAILED, True)
    [letter] = await store.list_dead_letters(held.id)
    assert letter.error == "blocked"


async def test_an_empty_error_is_none(store: Store) -> None:
    held = await running(store, a_pull())
    assert (await store.report(a_report(held, error=" "))).state is JobState.RUNNING


async def test_text_that_no_database_takes_is_made_to_fit(store: Store) -> None:
    held = await running(store, a_pull())
    bad = "\0\ud800" + "x" * 200_000
    await store.report(a_report(held, cursor=bad, log=bad))
    await store.report(a_report(held, error=bad, log=bad))
    assert (await store.get(held.id)).state is JobState.SCHEDULED


async def test_a_recurring_job_comes_back_after_its_run_is_done(store: Store, clock: FakeClock) -> None:
    await store.enqueue([a_pull(recurrence=recurring(), run_at=clock.now(), target_count=1)])
    held = await claim_one(store)
    answer = await store.report(a_report(held, items=phones(1), key="k"))
    assert (answer.state, answer.is_done, answer.done_reason) == (JobState.SCHEDULED, True, "target_reached")
    assert (await store.report(a_report(held, items=phones(1), key="k"))).is_repeated
    with pytest.raises(LeaseLost):
        await store.report(a_report(held))


async def test_a_report_learns_that_its_run_should_stop(store: Store, clock: FakeClock) -> None:
    await store.enqueue([a_pull(recurrence=recurring(), run_at=clock.now())])
    held = await claim_one(store)
    await store.stop_run([held.id])
    assert (await store.report(a_report(held))).should_stop
    assert (await store.heartbeat(held.id, held.token)).should_stop
    status = await store.job_status(held.id)
    assert (status.state, status.should_stop, status.reason) == (JobState.RUNNING, True, "stop_requested")
    assert (await store.report(a_report(held, is_done=True))).is_done


async def test_a_repeated_key_is_answered_as_the_first_time_and_changes_nothing(store: Store, clock: FakeClock) -> None:
    held = await running(store, a_pull())
    first = await store.report(a_report(held, items=phones(1, 1), cursor="a", key="r1"))
    before = await store.get(held.id)
    clock.advance(seconds=10)
    other = a_report(held, items=phones(2), cursor="b", key="r1", error="x", token=0, worker="somebody")
    second = await store.report(other)
    assert second.is_repeated
    assert not first.is_repeated
    assert {**_plain(second), "is_repeated": False} == _plain(first)
    assert await store.get(held.id) == before


def _plain(answer: ReportAnswer) -> dict[str, Any]:
    return {one.name: getattr(answer, one.name) for one in fields(answer)}


async def test_a_key_belongs_to_its_job(store: Store) -> None:
    first = await running(store, a_pull())
    second = await running(store, a_pull())
    await store.report(a_report(first, items=phones(1), key="r1"))
    answer = await store.report(a_report(second, items=phones(2), key="r1"))
    assert (answer.is_repeated, answer.added) == (False, 1)


async def test_a_keyed_end_is_answered_again_whatever_became_of_the_job(store: Store, clock: FakeClock) -> None:
    held = await running(store, a_pull())
    first = await store.report(a_report(held, error="blocked", key="e"))
    clock.advance(seconds=30)
    await due(store)
    taken = await claim_one(store, worker="worker-2")
    second = await store.report(a_report(held, error="blocked", key="e"))
    assert (second.state, second.is_repeated) == (first.state, True)
    assert (await store.get(held.id)).token == taken.token


async def test_a_refused_report_does_not_use_up_its_key(store: Store) -> None:
    held = await running(store, a_pull())
    with pytest.raises(LeaseLost):
        await store.report(a_report(held, items=phones(1), key="r1", token=held.token + 999))
    answer = await store.report(a_report(held, items=phones(1), key="r1"))
    assert (answer.added, answer.is_repeated) == (1, False)


async def test_fifty_reports_of_one_key_at_once_have_one_effect(store: Store, clock: FakeClock) -> None:
    held = await running(store, a_pull(target_count=100))
    report = a_report(held, items=phones(*range(10)), cursor="c", key="r1")
    async with rivals(store) as stores:
        answers = await asyncio.gather(*(stores[place % 4].report(report) for place in range(50)))
    assert [answer.is_repeated for answer in answers].count(False) == 1
    assert {(answer.added, answer.duplicates, answer.lease_expires_at) for answer in answers} == {
        (10, 0, clock.now() + timedelta(seconds=120))
    }
    job = await store.get(held.id)
    assert (job.progress_count, job.result_count) == (10, 10)
    assert await execute(store, "select count(*) from windlass_idempotency") == [(1,)]


async def test_racing_reports_reach_the_target_once(store: Store) -> None:
    held = await running(store, a_pull(target_count=30))
    reports = [a_report(held, items=phones(*range(place * 5, place * 5 + 5)), key=str(place)) for place in range(12)]
    async with rivals(store) as stores:
        told = [stores[place % 4].report(report) for place, report in enumerate(reports)]
        answers = await asyncio.gather(*told)
    job = await store.get(held.id)
    assert (job.state, job.done_reason, job.result_count) == (JobState.COMPLETED, "target_reached", 30)
    assert sum(answer.added for answer in answers) == len(await store.items.list(job_id=held.id)) == 30
    assert len(await store.list_executions(held.id)) == 1


async def test_reports_that_race_a_cancel_end_in_one_of_two_ways(store: Store) -> None:
    jobs = [await running(store, a_pull()) for _ in range(10)]
    reports = [store.report(a_report(job, is_done=True)) for job in jobs]
    cancels = [store.cancel([job.id]) for job in jobs]
    answers = await asyncio.gather(*reports, *cancels)
    for job, answer in zip(jobs, answers, strict=False):
        assert isinstance(answer, ReportAnswer)
        state = (await store.get(job.id)).state
        assert (answer.state, answer.is_cancelled) == (state, state is JobState.CANCELLED)
        assert len(await store.list_executions(job.id)) == 1


async def test_a_finished_job_answers_its_last_holder_and_whoever_names_no_run(store: Store) -> None:
    held = await running(store, a_pull())
    await store.report(a_report(held, is_done=True))
    before = await store.get(held.id)
    for report in (a_report(held, items=phones(1), key="k"), a_report(held, token=None, worker="anybody", error="x")):
        answer = await store.report(report)
        assert (answer.is_done, answer.done_reason, answer.added, answer.lease_expires_at) == (True, "worker_done", 0, None)
    with pytest.raises(LeaseLost):
        await store.report(a_report(held, token=held.token + 999))
    assert await store.get(held.id) == before


async def test_a_run_that_was_taken_away_is_not_the_accepted_one(store: Store, clock: FakeClock) -> None:
    held = await running(store, a_pull(max_attempts=1))
    clock.advance(seconds=31)
    await store.reclaim()
    assert (await store.get(held.id)).state is JobState.FAILED
    with pytest.raises(LeaseLost):
        await store.report(a_report(held, items=phones(1)))


async def test_an_earlier_holder_of_a_finished_job_has_lost_it(store: Store, clock: FakeClock) -> None:
    first = await running(store, a_pull())
    second = await again(store, clock, first, "worker-2")
    await end(store, clock, second)
    with pytest.raises(LeaseLost):
        await store.report(a_report(first, is_done=True))
    assert (await store.report(a_report(second, is_done=True))).is_done


@pytest.mark.parametrize("bring", ["cancel", "expire", "pending"])
async def test_a_holder_whose_job_waits_or_runs_elsewhere_has_lost_it(store: Store, clock: FakeClock, bring: str) -> None:
    held = await running(store, a_pull())
    if bring == "expire":
        await again(store, clock, held, "worker-2")
    elif bring == "pending":
        await end(store, clock, held, failure())
    else:
        held = held._replace(token=held.token + 999)
        await store.cancel([held.id])
    before = await store.get(held.id)
    with pytest.raises(LeaseLost):
        await store.report(a_report(held, items=phones(1), is_done=True))
    with pytest.raises(LeaseLost):
        await store.heartbeat(held.id, held.token)
    assert await store.get(held.id) == before


async def test_the_word_of_a_cancelled_job_s_holder_says_it_has_stopped(store: Store, clock: FakeClock) -> None:
    held = await running(store, a_pull(unique_key="k"))
    clock.advance(seconds=1)
    await store.cancel([held.id])
    told = await store.heartbeat(held.id, held.token)
    assert (told.should_stop, told.is_cancelled) == (True, True)
    answer = await store.report(a_report(held, items=phones(1), log="bye", key="k"))
    assert (answer.is_cancelled, answer.should_stop, answer.added) == (True, True, 0)
    job = await store.get(held.id)
    assert (job.state, job.token, job.unique_slot, job.result_count) == (JobState.CANCELLED, None, None, 0)
    [row] = await store.list_executions(held.id)
    assert (row.log_excerpt, row.stopped_at) == ("bye", clock.now())
    assert (await store.report(a_report(held, key="k"))).is_repeated
    later = await store.report(a_report(held))
    assert (later.is_cancelled, later.is_repeated) == (True, False)
    by_name = await store.report(a_report(held, token=None))
    assert by_name.is_cancelled
    with pytest.raises(LeaseLost):
        await store.report(a_report(held, token=None, worker="worker-2"))


async def test_without_a_token_the_worker_is_the_fence(store: Store) -> None:
    held = await running(store, a_pull())
    answer = await store.report(a_report(held, token=None, items=phones(1)))
    assert answer.added == 1
    with pytest.raises(LeaseLost) as lost:
        await store.report(a_report(held, token=None, worker="worker-2"))
    assert not isinstance(lost.value, TokenNeeded)
    assert (await store.report(a_report(held, token=None, is_done=True))).is_done


async def test_a_worker_that_held_the_job_before_must_say_which_run_it_means(store: Store, clock: FakeClock) -> None:
    first = await running(store, a_pull())
    second = await again(store, clock, first)
    with pytest.raises(TokenNeeded, match=r"'worker-1' has held job \d+ before.*attempt_id"):
        await store.report(a_report(second, token=None, items=phones(1)))
    assert (await store.report(a_report(second, items=phones(1)))).added == 1
    with pytest.raises(LeaseLost):
        await store.report(a_report(first, items=phones(2)))


async def test_another_worker_s_run_before_does_not_ask_for_a_token(store: Store, clock: FakeClock) -> None:
    first = await running(store, a_pull())
    await again(store, clock, first, "worker-2")
    assert (await store.report(a_report(first, token=None, worker="worker-2", items=phones(1)))).added == 1


async def test_a_cancelled_run_by_name_alone_is_told_to_stop(store: Store) -> None:
    held = await running(store, a_pull())
    await store.cancel([held.id])
    assert (await store.report(a_report(held, token=None))).is_cancelled
    assert (await store.get(held.id)).token is None


@pytest.mark.parametrize("job_id", [0, -5, 404, 2**80])
async def test_an_unknown_job_is_not_found(store: Store, job_id: int) -> None:
    for call in (
        store.report(Report(job_id=job_id, worker=WORKER)),
        store.heartbeat(job_id, 1),
        store.job_status(job_id),
    ):
        with pytest.raises(JobNotFound):
            await call


async def test_a_token_no_database_holds_is_a_lost_lease(store: Store) -> None:
    held = await running(store, a_pull())
    for token in (2**63, -(2**70)):
        with pytest.raises(LeaseLost):
            await store.heartbeat(held.id, token)
        with pytest.raises(LeaseLost):
            await store.report(a_report(held, token=token))


@pytest.mark.parametrize(
    ("field", "said"),
    [
        ("worker", {"worker": ""}),
        ("idempotency_key", {"key": ""}),
        ("idempotency_key", {"key": "x" * 256}),
        ("idempotency_key", {"key": "\0"}),
        ("extend_lease_sec", {"extend": timedelta(seconds=-1)}),
        ("cursor", {"cursor": 5}),
        ("error", {"error": ["x"]}),
        ("log", {"log": b"x"}),
    ],
)
def test_a_bad_report_is_refused_by_name(field: str, said: dict[str, Any]) -> None:
    given: dict[str, Any] = {"job_id": 1, "worker": WORKER}
    with pytest.raises(InvalidInput) as refused:
        Report(**given | said)
    assert refused.value.field == field


async def test_a_report_with_a_bad_item_changes_nothing(store: Store) -> None:
    held = await running(store, a_pull())
    before = await store.get(held.id)
    with pytest.raises(InvalidPayload, match=r"items\[1\]"):
        await store.report(a_report(held, items=[{}, 5], cursor="c", is_done=True, key="k"))
    assert await store.get(held.id) == before


async def test_a_status_says_where_a_job_stands_and_why(store: Store) -> None:
    [enqueued] = await store.enqueue([a_pull(max_attempts=1)])
    waiting = await store.job_status(enqueued.id)
    assert (waiting.state, waiting.should_stop, waiting.reason) == (JobState.PENDING, True, "new")
    held = await claim_one(store)
    at_work = await store.job_status(held.id)
    assert (at_work.state, at_work.should_stop, at_work.reason) == (JobState.RUNNING, False, None)
    await store.report(a_report(held, error="blocked"))
    dead = await store.job_status(held.id)
    assert (dead.state, dead.should_stop, dead.reason) == (JobState.FAILED, True, "blocked")


async def test_the_same_pull_asked_again_gets_the_same_lease(store: Store, clock: FakeClock) -> None:
    await store.enqueue([a_pull(payload='{"city":"Ulm"}'), a_pull()])
    first = await store.pull(await store.slices(), a_lease(), "p1")
    assert first is not None
    assert (first.payload, (await store.get(first.id)).started_at) == ('{"city":"Ulm"}', clock.now())
    assert await store.pull(await store.slices(), a_lease(), "p1") == first
    clock.advance(seconds=20)
    late = await store.pull((await store.slices())._replace(open=()), a_lease(), "p1")
    assert late == first._replace(lease_expires_at=clock.now() + LEASE)
    second = await store.pull(await store.slices(), a_lease(), "p2")
    other = await store.pull(await store.slices(), a_lease("worker-2"), "p1")
    assert second is not None
    assert second.id != first.id
    assert other is None


async def test_a_pull_without_a_name_takes_another_job_each_time(store: Store) -> None:
    await store.enqueue([a_pull(), a_pull()])
    pulled = [await store.pull(await store.slices(), a_lease()) for _ in range(3)]
    assert [job is not None for job in pulled] == [True, True, False]


async def test_a_pull_s_name_is_free_again_when_its_run_has_ended(store: Store, clock: FakeClock) -> None:
    await store.enqueue([a_pull(), a_pull(), a_pull()])
    first = await store.pull(await store.slices(), a_lease(), "p")
    assert first is not None
    await store.report(a_report(first, is_done=True))
    second = await store.pull(await store.slices(), a_lease(), "p")
    assert second is not None
    clock.advance(seconds=31)
    await store.reclaim()
    third = await store.pull(await store.slices(), a_lease(), "p")
    assert third is not None
    assert len({first.id, second.id, third.id}) == 3


async def test_a_pull_whose_job_was_cancelled_gets_another(store: Store) -> None:
    await store.enqueue([a_pull(unique_key="k"), a_pull()])
    first = await store.pull(await store.slices(), a_lease(), "p")
    assert first is not None
    await store.cancel([first.id])
    second = await store.pull(await store.slices(), a_lease(), "p")
    assert second is not None
    assert second.id != first.id
    job = await store.get(first.id)
    assert (job.state, job.token, job.unique_slot) == (JobState.CANCELLED, None, None)


async def test_racing_pulls_of_one_name_get_one_job(store: Store) -> None:
    await store.enqueue([a_pull() for _ in range(20)])
    found = await store.slices()
    async with rivals(store) as stores:
        pulled = await asyncio.gather(*(stores[place % 4].pull(found, a_lease(), "p") for place in range(12)))
    assert len({job and (job.id, job.token) for job in pulled}) == 1
    assert sum(job.state is JobState.RUNNING for job in await all_jobs(store)) == 1


async def test_a_pulled_job_that_is_lost_is_charged(store: Store, clock: FakeClock) -> None:
    await store.enqueue([a_pull()])
    held = await store.pull(await store.slices(), a_lease(), "p")
    assert held is not None
    clock.advance(seconds=31)
    assert await store.reclaim() == [held.id]
    job = await store.get(held.id)
    [row] = await store.list_executions(held.id)
    assert (job.attempt, row.reason) == (1, RunReason.LEASE_EXPIRED)


@pytest.mark.parametrize(("field", "worker", "pull_id"), [("pull_id", "w", ""), ("pull_id", "w", "x" * 201), ("worker", "", "p")])
async def test_a_bad_pull_is_refused_by_name(store: Store, *, field: str, worker: str, pull_id: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        await store.pull(await store.slices(), a_lease(worker), pull_id)
    assert refused.value.field == field


async def test_a_stored_answer_reads_as_it_was_written() -> None:
    answer = ReportAnswer(state=JobState.RUNNING, added=1, duplicates=2, lease_expires_at=FakeClock().now(), should_stop=True)
    read = ReportAnswer.decode(answer.encode())
    assert _plain(read) == {**_plain(answer), "is_repeated": True}
    assert decode(answer.encode())["added"] == 1


async def test_a_worker_of_ours_may_end_a_job_it_reported_on(store: Store, clock: FakeClock) -> None:
    held = await running(store, a_pull())
    await store.report(a_report(held, items=phones(1), cursor="c"))
    assert await end(store, clock, held, run=Run(held.claimed_at, clock.now()))
    job = await store.get(held.id)
    assert (job.state, job.result_count, job.last_cursor) == (JobState.COMPLETED, 1, "c")
