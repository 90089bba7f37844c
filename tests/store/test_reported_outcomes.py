"""Reports in full words: what a remote worker says of a run is decided as an in-process worker's word is."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.store.builders import running
from windlass.core.job import JobState, RunReason, WaitReason
from windlass.core.outcome import Cancelled, Failure, Outcome, Raised, Released, Returned, Run, Snoozed
from windlass.core.report import Report, ReportAnswer
from windlass.core.reported_outcome import ReportedOutcome
from windlass.errors import InvalidInput
from windlass.store import Store
from windlass.testing import FakeClock

MINUTE = timedelta(minutes=1)


async def told(store: Store, reported: ReportedOutcome, **said: object) -> tuple[ReportAnswer, int]:
    held = await running(store)
    report = Report(job_id=held.id, worker=held.worker, token=held.token, reported=reported, **said)  # type: ignore[arg-type]
    return await store.report(report), held.id


@pytest.mark.parametrize(
    ("outcome", "left"),
    [
        (Returned('{"a":1}'), (JobState.COMPLETED, 1, None)),
        (Raised(Failure("boom", "ValueError", "line 1")), (JobState.SCHEDULED, 1, RunReason.ERROR)),
        (Raised(Failure("late", "TimedOut", reason=RunReason.TIMED_OUT)), (JobState.SCHEDULED, 1, RunReason.TIMED_OUT)),
        (Raised(Failure("no use"), is_final=True), (JobState.FAILED, 1, RunReason.ERROR)),
        (Snoozed(MINUTE), (JobState.SCHEDULED, 0, RunReason.SNOOZED)),
        (Cancelled("not wanted"), (JobState.CANCELLED, 1, RunReason.CANCELLED)),
        (Released(has_started=True), (JobState.SCHEDULED, 0, RunReason.RELEASED)),
    ],
)
async def test_each_way_to_end_is_decided(store: Store, outcome: Outcome, left: tuple[JobState, int, RunReason | None]) -> None:
    measured = Run(cpu_time_ms=5, memory_peak_mb=7, items_crawled=9, metadata='{"m":1}')
    answer, number = await told(store, ReportedOutcome(outcome, measured), log="all of it")
    job = await store.get(number)
    [run] = await store.list_executions(number)
    assert (answer.state, job.attempt, run.reason) == (job.state, job.attempt, run.reason) == left
    assert (run.cpu_time_ms, run.memory_peak_mb, run.items_crawled, run.metadata_json) == (5, 7, 9, '{"m":1}')
    # The log of a whole run is its execution's and not the job's message.
    assert (run.log_excerpt, job.progress_message) == ("all of it", None)


async def test_a_job_that_never_began_comes_back_as_if_it_had_not_been_pulled(store: Store) -> None:
    _, number = await told(store, ReportedOutcome(Released(has_started=False)))
    job = await store.get(number)
    assert (job.wait_reason, job.attempt, job.executions) == (WaitReason.RELEASED, 0, 0)
    assert await store.list_executions(number) == []


async def test_a_chosen_wait_takes_the_place_of_the_policys(store: Store, clock: FakeClock) -> None:
    _, number = await told(store, ReportedOutcome(Raised(Failure("busy"), after=7 * MINUTE)))
    job = await store.get(number)
    assert (job.wait_reason, job.run_at) == (WaitReason.RETRY, clock.now() + 7 * MINUTE)


async def test_a_run_that_goes_on_counts_by_itself_and_keeps_its_lease(store: Store, clock: FakeClock) -> None:
    answer, number = await told(store, ReportedOutcome(progress_count=40), items=[{"phone": "1"}], cursor="c", log="so far")
    job = await store.get(number)
    assert (answer.state, answer.is_done, answer.added) == (JobState.RUNNING, False, 1)
    assert (job.progress_count, job.result_count, job.last_cursor, job.progress_message) == (40, 1, "c", "so far")
    assert job.lease_expires_at == clock.now() + timedelta(seconds=120)


async def test_an_end_that_is_told_twice_counts_once(store: Store) -> None:
    held = await running(store)
    report = Report(job_id=held.id, worker="w", token=held.token, key="end", reported=ReportedOutcome(Raised(Failure("boom"))))
    first = await store.report(report)
    again = await store.report(report)
    assert (first.is_repeated, again.is_repeated, again.state) == (False, True, first.state)
    assert (await store.get(held.id)).executions == 1


@pytest.mark.parametrize("also", [{"is_done": True}, {"error": ""}, {"error": "boom"}])
def test_full_words_stand_alone(also: dict[str, object]) -> None:
    with pytest.raises(InvalidInput, match="in place of done and error"):
        Report(job_id=1, worker="w", reported=ReportedOutcome(), **also)  # type: ignore[arg-type]
