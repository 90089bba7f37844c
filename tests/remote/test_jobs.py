"""The verbs of jobs over HTTP, from another program: needs the routes of /api/v1/jobs."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from tests.remote.conftest import TOKEN
from windlass import Windlass
from windlass.core.ids import job_uuid
from windlass.core.job import JobState
from windlass.errors import (
    DuplicateJob,
    InvalidInput,
    InvalidTransition,
    JobCancelled,
    JobFailed,
    JobNotFound,
    WaitTimeout,
)
from windlass.remote import AsyncClient, Client
from windlass.store import Store
from windlass.testing import run_all


def test_a_job_is_enqueued_and_read_back(client: Client) -> None:
    at = datetime(2100, 1, 1, tzinfo=UTC)
    made = client.enqueue(
        "email", {"to": "ann", "n": [1, None, "ü"]}, lane="fast", priority=50, run_at=at, max_attempts=7, metadata={"a": 1}
    )
    assert (made.state, made.duplicate, made.id) == (JobState.SCHEDULED, False, job_uuid(made.number))
    for ref in (made, made.number, made.id, str(made.id)):
        job = client.get(ref)
        assert (job.number, job.payload, job.lane, job.priority) == (made.number, {"to": "ann", "n": [1, None, "ü"]}, "fast", 50)
    assert (made.run_at, made.max_attempts, made.metadata, made.attempts) == (at, 7, {"a": 1}, 0)
    assert isinstance(made.id, UUID)


def test_durations_may_be_written_in_any_way(client: Client) -> None:
    for delay in ("1h", 3600, timedelta(hours=1)):
        made = client.enqueue("email", delay=delay)
        assert timedelta(minutes=59) < made.run_at - made.created_at <= timedelta(hours=1)


def test_a_key_that_is_taken_gives_the_job_that_holds_it(client: Client) -> None:
    first = client.enqueue("email", unique_key="k1")
    again = client.enqueue("email", unique_key="k1")
    assert (again.number, again.duplicate) == (first.number, True)
    with pytest.raises(DuplicateJob) as refused:
        client.enqueue("email", unique_key="k1", on_conflict="reject")
    assert (refused.value.holder, refused.value.task, refused.value.key) == (first.number, "email", "k1")


def test_many_jobs_are_enqueued_in_order_all_or_none(client: Client) -> None:
    client.enqueue("bulk", unique_key="b1")
    made = client.enqueue_many([{"task": "bulk", "payload": {"n": n}, "unique_key": f"b{n}"} for n in range(3)])
    assert ([one.duplicate for one in made.jobs], made.enqueued, made.duplicates) == ([False, True, False], 2, 1)
    assert [client.get(one).unique_key for one in made.jobs] == ["b0", "b1", "b2"]
    before = client.page(task="bulk").total
    with pytest.raises(InvalidInput):
        client.enqueue_many([{"task": "bulk"}, {"task": ""}])
    assert client.page(task="bulk").total == before


def test_lists_go_on_over_all_pages(client: Client) -> None:
    numbers = [one.number for one in client.enqueue_many([{"task": "listed"} for _ in range(7)]).jobs]
    assert [job.number for job in client.list(task="listed", page_size=3)] == numbers[::-1]
    assert [job.number for job in client.list(task="listed", page_size=3, sort_order="asc")] == numbers
    assert list(client.list(task="listed", status=["failed", JobState.CANCELLED])) == []
    page = client.page(task="listed", limit=2, status="pending")
    assert (page.total, page.is_total_exact, len(page.jobs), page.next_cursor is not None) == (7, True, 2, True)


def test_operators_move_jobs_and_wrong_moves_name_both_states(client: Client) -> None:
    job = client.enqueue("moved", every="1h")
    assert client.pause(job).state is JobState.PAUSED
    assert client.resume(job).state is JobState.SCHEDULED
    assert client.disable(job).enabled is False
    assert client.enable(job).enabled is True
    assert client.run_now(job).state is JobState.PENDING
    assert client.cancel(job, "not needed").state is JobState.CANCELLED
    with pytest.raises(InvalidTransition) as refused:
        client.cancel(job)
    assert (refused.value.job_id, refused.value.state, refused.value.target) == (job.number, "cancelled", "cancelled")
    assert refused.value.request_id is not None
    with pytest.raises(InvalidTransition):
        client.retry(job)
    assert client.delete(job).number == job.number
    with pytest.raises(JobNotFound):
        client.get(job)


def test_bad_values_are_named(client: Client) -> None:
    with pytest.raises(InvalidInput) as refused:
        client.enqueue("email", priority=101)
    assert (refused.value.field, refused.value.request_id is not None) == ("priority", True)
    for ref in ("nothing", 10**15, "b17d0000-0000-8002-8000-0000ffffffff"):
        with pytest.raises(JobNotFound):
            client.get(ref)


async def test_a_finished_job_has_its_result_runs_and_stats(client: Client, database: str, address: str) -> None:
    async with Windlass(database) as app:

        @app.task
        def add(a: int, b: int) -> int:
            if b < 0:
                raise ValueError("negative")
            return a + b

        good = client.enqueue("add", {"a": 1, "b": 2})
        bad = client.enqueue("add", {"a": 1, "b": -2}, max_attempts=1)
        gone = client.enqueue("add", {"a": 1, "b": 2}, delay="1h")
        with pytest.raises(WaitTimeout):
            client.wait(good, timeout=0)
        for lane in ("fast", "default"):
            client.lanes.resume(lane)
        await run_all(app)
    assert client.wait(good) == 3
    with pytest.raises(JobFailed, match="negative") as failed:
        client.wait(bad)
    assert 'raise ValueError("negative")' in (failed.value.traceback or "")
    async with AsyncClient(address, TOKEN) as aclient:
        with pytest.raises(JobFailed, match="negative") as failed:
            await aclient.wait(bad)
    assert 'raise ValueError("negative")' in (failed.value.traceback or "")
    client.cancel(gone, "changed mind")
    with pytest.raises(JobCancelled, match="changed mind"):
        client.wait(gone)
    [run] = client.executions(good)
    assert (run.execution_number, run.status, run.result) == (1, "completed", 3)
    [run] = client.executions(bad, page_size=1)
    assert (run.status, run.error_message) == ("failed", "ValueError: negative")
    assert (client.stats(good).success_rate, client.stats(bad).failed_runs) == (1.0, 1)
    assert client.queue_stats().processing == 0
    assert client.metrics().jobs[JobState.COMPLETED] >= 1
    retried = client.retry(bad)
    assert (retried.state, retried.attempts) == (JobState.PENDING, 0)
    client.cancel(retried)


async def test_the_same_for_asyncio(aclient: AsyncClient, store: Store) -> None:
    made = [await aclient.enqueue("async", {"n": n}, correlation_id="c") for n in range(5)]
    assert [job.number async for job in aclient.list(task="async", page_size=2)] == [job.number for job in made][::-1]
    traced = await aclient.correlation("c")
    assert len(traced) == 5
    last = max(one.number for one in traced)
    assert [one.number for one in await aclient.correlation("c", after=last - 1)] == [last]
    waiting = asyncio.create_task(aclient.wait(made[0]))
    await store.cancel([made[0].number])
    with pytest.raises(JobCancelled):
        await waiting
    assert [run async for run in aclient.executions(made[1])] == []
    with pytest.raises(JobNotFound):
        await aclient.get("nothing")
    answers = await asyncio.gather(*(aclient.enqueue("async", unique_key="one") for _ in range(20)))
    assert (len({job.number for job in answers}), sum(not job.duplicate for job in answers)) == (1, 1)
