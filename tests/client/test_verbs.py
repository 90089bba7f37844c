from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import Any

import pytest

from windlass import (
    InvalidInput,
    InvalidTransition,
    JobCancelled,
    JobFailed,
    JobNotFound,
    JobState,
    NewJob,
    WaitTimeout,
    Windlass,
)
from windlass.core.cadence import Every, Recurrence
from windlass.core.filter import JobFilter
from windlass.core.ids import job_uuid
from windlass.core.job import Lease
from windlass.core.outcome import Failure, Outcome, Raised, Returned, decide
from windlass.core.page import JobQuery


@pytest.fixture
def note(app: Windlass) -> Any:
    @app.task(max_attempts=1)
    def note(number: int) -> None: ...

    return note


async def run_next(app: Windlass, outcome: Outcome) -> int:
    """Do what a worker does with one job."""
    store = await app.store()
    lease = Lease(Random(1).getrandbits(60), "me", timedelta(seconds=20))
    [job] = await store.claim(await store.slices(), 1, lease)
    await store.finish([decide(job, outcome, now=await store.clock(), rng=Random(1))])
    return job.id


async def test_a_job_is_found_by_number_uuid_answer_and_itself(app: Windlass, note: Any) -> None:
    made = await note.enqueue(1)
    job = await app.get(made)
    for ref in (made.id, str(made.id), job_uuid(made.id), str(job_uuid(made.id)), job):
        assert await app.get(ref) == app.get_sync(ref) == job


@pytest.mark.parametrize("ref", [0, -1, 2**70, "x", "", True, None, 1.5, 999_999])
async def test_what_no_job_is_called_is_not_found(app: Windlass, ref: Any) -> None:
    with pytest.raises(JobNotFound):
        await app.get(ref)
    with pytest.raises(JobNotFound):
        await app.cancel(ref)


async def test_operators_move_jobs_both_ways(app: Windlass, note: Any) -> None:
    job = await note.using(delay="1h").enqueue(1)
    assert (await app.pause(job)).state is JobState.PAUSED
    assert (await app.resume(job)).state is JobState.SCHEDULED
    assert not app.disable_sync(job).is_enabled
    assert app.enable_sync(job).is_enabled
    assert app.pause_sync(job).state is JobState.PAUSED
    assert app.resume_sync(job).state is JobState.SCHEDULED
    assert (await app.run_now(job)).state is JobState.PENDING
    assert app.run_now_sync(job).state is JobState.PENDING
    assert (await app.cancel(job, "not needed")).state is JobState.CANCELLED
    with pytest.raises(InvalidTransition, match="cancelled"):
        app.cancel_sync(job)


async def test_a_failed_job_is_retried_and_its_letters_are_read(app: Windlass, note: Any) -> None:
    job = await note.enqueue(1)
    await run_next(app, Raised(Failure("boom", "ValueError")))
    assert [letter.error for letter in await app.dead_letters_of(job)] == ["boom"]
    assert [run.error for run in app.executions_sync(job)] == ["boom"]
    assert (await app.retry(job)).state is JobState.PENDING
    with pytest.raises(InvalidTransition):
        app.retry_sync(job)


async def test_a_job_is_edited(app: Windlass, note: Any) -> None:
    job = await note.enqueue(1)
    changed = await app.edit(job, payload={"number": 2}, priority=4, timeout="5s", metadata={"a": 1}, retry={"base": 3})
    assert (changed.payload_json, changed.priority, changed.timeout_us) == ('{"number":2}', 4, 5_000_000)
    assert app.edit_sync(job, description="hello").description == "hello"
    bad: Any = {"state": "completed"}
    with pytest.raises(InvalidInput, match="state: is not an option"):
        await app.edit(job, **bad)


async def test_jobs_are_listed_and_counted(app: Windlass, note: Any) -> None:
    await note.enqueue_many([{"number": number} for number in range(5)])
    query = JobQuery(filter=JobFilter(tasks=("note",)), limit=3)
    first = await app.list(query)
    rest = app.list_sync(replace(query, cursor=first.next_cursor))
    assert [len(first.jobs), len(rest.jobs), first.total] == [3, 2, 5]
    assert [(count.task, count.jobs) for count in app.counts_sync()] == [("note", 5)]


async def test_waiting_gives_the_result(app: Windlass, note: Any) -> None:
    job = await note.enqueue(1)
    waiting = asyncio.gather(app.wait(job), asyncio.to_thread(app.wait_sync, job, "20s"))
    await asyncio.sleep(0.05)
    await run_next(app, Returned('{"sent":[1,2]}'))
    assert list(await waiting) == [{"sent": [1, 2]}, {"sent": [1, 2]}]


async def test_waiting_for_a_job_without_a_result_gives_none(app: Windlass, note: Any) -> None:
    job = await note.enqueue(1)
    await run_next(app, Returned(None))
    assert await app.wait(job) is None


async def test_waiting_tells_why_there_is_no_result(app: Windlass, note: Any) -> None:
    failed, cancelled, open_one = [await note.enqueue(number) for number in range(3)]
    await run_next(app, Raised(Failure("boom", "ValueError")))
    await app.cancel(cancelled)
    with pytest.raises(JobFailed, match=f"job {failed.id} failed: boom"):
        await app.wait(failed)
    with pytest.raises(JobCancelled, match=f"job {cancelled.id} was cancelled"):
        app.wait_sync(cancelled)
    with pytest.raises(WaitTimeout, match="still pending"):
        await app.wait(open_one, timeout=0.02)
    with pytest.raises(TimeoutError):
        app.wait_sync(open_one, timedelta())


async def test_nobody_waits_for_a_job_that_comes_back(app: Windlass) -> None:
    [job] = await app.enqueue_jobs([NewJob(task="tick", recurrence=Recurrence(cadence=Every(timedelta(hours=1))))])
    with pytest.raises(InvalidInput, match="recurring"):
        await app.wait(job)
    with pytest.raises(InvalidTransition):
        await app.stop(job)
    with pytest.raises(InvalidTransition):
        app.stop_sync(job)


async def test_jobs_are_listed_by_the_name_of_a_state(app: Windlass, note: Any) -> None:
    done, _ = [await note.enqueue(number) for number in range(2)]
    await run_next(app, Returned())
    page = await app.list(JobQuery(filter=JobFilter(states=("completed",))))
    assert [job.id for job in page.jobs] == [done.id]
