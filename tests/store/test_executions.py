"""A job's runs: those that ended, and the one that goes on."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.store.builders import a_job, claim_one, due, end, enqueue_one, failure, recurring, running
from tests.support.raw import execute
from windlass.core.job import RunStatus
from windlass.errors import ExecutionNotFound, InvalidInput
from windlass.store import Store
from windlass.testing import FakeClock


async def ran(store: Store, clock: FakeClock, times: int) -> int:
    """Run a recurring job so many times."""
    job_id = await enqueue_one(store, a_job(recurrence=recurring(), run_at=clock.now()))
    for _ in range(times):
        await due(store)
        await end(store, clock, await claim_one(store))
        clock.advance(minutes=31)
    return job_id


async def test_the_run_that_goes_on_comes_first_and_has_no_end(store: Store, clock: FakeClock) -> None:
    job_id = await ran(store, clock, 2)
    await due(store)
    clock.advance(seconds=5)
    job = await claim_one(store)
    first, *ended = await store.list_executions(job_id)
    assert (first.number, first.status, first.started_at, first.finished_at) == (3, RunStatus.RUNNING, job.claimed_at, None)
    assert (first.token, first.worker, first.duration_ms, first.attempt, first.slot_at) == (
        job.token,
        "worker-1",
        None,
        job.attempt,
        job.slot_at,
    )
    assert first.wait_ms == (job.claimed_at - job.run_at) // timedelta(milliseconds=1)
    assert [run.number for run in ended] == [2, 1]
    assert await store.count_executions(job_id) == 3
    assert await store.get_execution(job_id, 3) == first
    await end(store, clock, job)
    assert [run.status for run in await store.list_executions(job_id)] == [RunStatus.COMPLETED] * 3
    assert await store.count_executions(job_id) == 3


async def test_a_run_that_has_not_started_is_not_shown(store: Store) -> None:
    job = await running(store, started=False)
    assert await store.list_executions(job.id) == []
    assert await store.count_executions(job.id) == 0


async def test_runs_come_in_pages_by_offset_and_by_number(store: Store, clock: FakeClock) -> None:
    job_id = await ran(store, clock, 5)
    await due(store)
    await claim_one(store)
    numbers = [run.number for offset in (0, 2, 4, 6) for run in await store.list_executions(job_id, limit=2, offset=offset)]
    assert numbers == [6, 5, 4, 3, 2, 1]
    assert [run.number for run in await store.list_executions(job_id, limit=2, before=4)] == [3, 2]


async def test_what_retention_took_is_not_counted(store: Store, clock: FakeClock) -> None:
    job_id = await ran(store, clock, 105)
    await execute(store, f"delete from windlass_executions where job_id = {job_id} and number <= 5")
    assert await store.count_executions(job_id) == 100
    with pytest.raises(ExecutionNotFound, match=f"job {job_id} has no execution 5"):
        await store.get_execution(job_id, 5)


async def test_one_run_is_read_whole(store: Store, clock: FakeClock) -> None:
    job = await running(store, a_job(max_attempts=1))
    await end(store, clock, job, failure("no luck"))
    run = await store.get_execution(job.id, 1)
    assert (run.error, run.error_type, run.status) == ("no luck", "RuntimeError", RunStatus.FAILED)


@pytest.mark.parametrize(("job_id", "number"), [(1, 1), (0, 1), (1, 0), (2**80, 1), (1, 2**40)])
async def test_a_run_that_is_not_there_is_not_found(store: Store, job_id: int, number: int) -> None:
    with pytest.raises(ExecutionNotFound):
        await store.get_execution(job_id, number)


@pytest.mark.parametrize("options", [{"limit": 0}, {"limit": 501}, {"offset": -1}, {"before": 0}])
async def test_pages_that_cannot_be_are_refused(store: Store, options: dict[str, int]) -> None:
    with pytest.raises(InvalidInput):
        await store.list_executions(1, **options)


async def test_the_log_of_the_run_that_goes_on_is_shown_and_the_final_one_after_it(store: Store, clock: FakeClock) -> None:
    job = await running(store, a_job(max_attempts=2))
    assert (await store.get_execution(job.id, 1)).log_excerpt is None
    await store.record_logs([(job.id, job.token, "one"), (job.id, job.token + 1, "of somebody else"), (99, 1, "of no job")])
    await store.record_logs([(job.id, job.token, "one\ntwo")])
    [run] = await store.list_executions(job.id)
    assert (run.status, run.log_excerpt) == (RunStatus.RUNNING, "one\ntwo")
    assert (await store.get_execution(job.id, 1)).log_excerpt == "one\ntwo"
    await end(store, clock, job, failure())
    assert (await store.get_execution(job.id, 1)).log_excerpt is None
    clock.advance(hours=1)
    await due(store)
    again = await claim_one(store)
    # Late, from the first run: its worker no longer holds the job.
    await store.record_logs([(job.id, job.token, "three")])
    assert [run.log_excerpt for run in await store.list_executions(job.id)] == [None, None]
    await store.record_logs([(job.id, again.token, "second try")])
    assert await store.prune_logs() == 1
    assert (await store.get_execution(job.id, 2)).log_excerpt == "second try"


async def test_a_run_whose_worker_is_lost_keeps_what_was_recorded_of_its_log(store: Store, clock: FakeClock) -> None:
    lost, failed, cancelled = [await running(store) for _ in range(3)]
    await store.record_logs([(job.id, job.token, f"last words of {job.id}") for job in (lost, failed, cancelled)])
    await store.fail([failed.id], "by hand", will_retry=False)
    await store.cancel([cancelled.id])
    clock.advance(minutes=1)
    await store.reclaim(limit=10)
    for job in (lost, failed, cancelled):
        assert (await store.get_execution(job.id, 1)).log_excerpt == f"last words of {job.id}"
