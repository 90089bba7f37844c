"""What is counted of runs: exact at once, whether folded or not, and for ever."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import timedelta
from pathlib import Path
from random import Random

import pytest

from tests.store.builders import a_job, claim, claim_one, due, end, enqueue_one, fail_for_good, failure, recurring, running
from tests.support.postgres_server import PostgresServer
from tests.support.raw import execute
from tests.support.stores import fresh_url
from windlass.core.histogram import bucket
from windlass.core.job import JobState, RunReason, RunStatus
from windlass.core.outcome import Outcome, Released, Returned, Run, Snoozed
from windlass.core.runs import Total, span
from windlass.errors import InvalidInput, JobNotFound
from windlass.store import Store, open_store
from windlass.testing import FakeClock

DAY = timedelta(days=1)


async def run_for(
    store: Store, clock: FakeClock, ms: int, outcome: Outcome | None = None, *, task: str = "work", wait_ms: int = 0
) -> None:
    """Run one job that waits and takes so long."""
    await enqueue_one(store, a_job(task))
    clock.advance(seconds=wait_ms / 1000)
    job = await claim_one(store)
    clock.advance(seconds=ms / 1000)
    assert await end(store, clock, job, outcome or Returned(), run=Run(job.claimed_at, clock.now()))


async def test_a_run_is_counted_at_once_and_stays_so_when_folded(store: Store, clock: FakeClock) -> None:
    start = clock.now()
    await run_for(store, clock, 1500, wait_ms=250)
    await run_for(store, clock, 40, failure(), wait_ms=0)
    await run_for(store, clock, 7, task="other")

    async def read() -> tuple[object, ...]:
        last = clock.now() + timedelta(minutes=2)
        first = start - timedelta(minutes=1)
        return (
            await store.runs.totals(),
            await store.runs.minutes(first, last),
            await store.runs.minutes(first, last, task="work"),
            await store.insights.scheduler(),
        )

    before = await read()
    assert before[0] == [
        Total("other", RunStatus.COMPLETED, None, 1, 0, 7),
        Total("work", RunStatus.COMPLETED, None, 1, 250, 1500),
        Total("work", RunStatus.FAILED, RunReason.ERROR, 1, 0, 40),
    ]
    assert await store.runs.fold() > 0
    assert await read() == before
    assert await store.runs.fold() == 0
    await run_for(store, clock, 7, task="other")
    assert sum(one.runs for one in await store.runs.totals()) == 4
    await store.runs.fold()
    assert sum(one.runs for one in await store.runs.totals()) == 4


async def test_minutes_hold_the_runs_that_ended_in_them(store: Store, clock: FakeClock) -> None:
    start = clock.now()
    for ms in (10, 20, 5000):
        await run_for(store, clock, ms)
    clock.advance(seconds=120)
    await store.runs.fold()
    await run_for(store, clock, 30, failure(), task="other")
    minutes = await store.runs.minutes(start - timedelta(minutes=1), clock.now() + timedelta(minutes=1))
    assert sum(one.finished for one in minutes) == 4
    assert [one.minute.second for one in minutes] == [0] * len(minutes)
    whole = span(minutes)
    assert whole is not None
    assert (whole.completed, whole.failed, whole.cancelled, whole.duration_ms) == (3, 1, 0, 5060)
    assert whole.runs.counts == Counter(map(bucket, [10, 20, 5000, 30]))
    assert whole.waits.total == 4
    other = await store.runs.minutes(start, clock.now() + timedelta(minutes=1), task="other")
    assert [(one.completed, one.failed) for one in other] == [(0, 1)]
    assert await store.runs.minutes(start, clock.now() + timedelta(minutes=1), task="none") == []


async def test_buckets_in_the_database_are_those_of_the_scale(store: Store, clock: FakeClock) -> None:
    rng = Random(5)
    samples = [0, 1, 2, 9, 10, 12, 13, 99, 100, 124, 125, 160, 314, 315, 316, 999, 1000, 1249, 1250, 99_999_999, 10**8, 10**10]
    samples += [int(10 ** rng.uniform(0, 9)) for _ in range(100)]
    job = await running(store)
    await end(store, clock, job)
    at = "{0}" if store.database.dialect == "sqlite" else "timestamptz 'epoch' + {0} * interval '1 microsecond'"
    values = ", ".join(
        f"({job.id}, {number}, 1, {number}, 'w', {at.format(0)}, {at.format(ms * 1000 + 999)}, {ms}, 'completed')"
        for number, ms in enumerate(samples, start=2)
    )
    columns = "job_id, number, attempt, token, worker, started_at, finished_at, wait_ms, status"
    await execute(store, f"insert into windlass_executions ({columns}) values {values}")
    for column in ("wait_bucket", "run_bucket"):
        found = Counter(
            {row[0]: row[1] for row in await execute(store, f"select {column}, sum(runs) from windlass_run_deltas group by 1")}
        )
        assert found - Counter({0: 1}) == Counter(map(bucket, samples))
    await execute(store, "delete from windlass_executions where number > 1")


async def test_released_and_snoozed_runs_are_totals_but_no_statistics(store: Store, clock: FakeClock) -> None:
    start = clock.now()
    await run_for(store, clock, 100)
    await run_for(store, clock, 100, Snoozed(timedelta(hours=1)))
    await run_for(store, clock, 100, Released(has_started=True), task="other")
    for _ in range(2):
        reasons = {one.reason for one in await store.runs.totals()}
        assert reasons == {None, RunReason.SNOOZED, RunReason.RELEASED}
        found = await store.insights.scheduler()
        assert (found.executions, found.average_duration_ms, found.success_rate) == (1, 100, 1.0)
        whole = span(await store.runs.minutes(start - timedelta(minutes=1), clock.now() + timedelta(minutes=1)))
        assert whole is not None
        assert (whole.finished, whole.runs.total) == (1, 1)
        await store.runs.fold()


async def test_lost_leases_are_counted_for_ever(store: Store, clock: FakeClock) -> None:
    await running(store)
    clock.advance(seconds=60)
    assert await store.reclaim()
    found = await store.insights.scheduler()
    assert (found.lost_leases, found.executions, found.success_rate) == (1, 1, 0.0)
    assert found.jobs[JobState.SCHEDULED] == 1


async def test_totals_outlive_the_executions(store: Store, clock: FakeClock) -> None:
    job = await running(store)
    await end(store, clock, job)
    for table, key in (("executions", "job_id"), ("bodies", "job_id"), ("jobs", "id")):
        await execute(store, f"delete from windlass_{table} where {key} = {job.id}")
    assert [one.runs for one in await store.runs.totals()] == [1]


async def test_old_minutes_are_pruned_and_totals_stay(store: Store, clock: FakeClock) -> None:
    start = clock.now()
    await run_for(store, clock, 5)
    clock.advance(days=3)
    await run_for(store, clock, 5)
    await store.runs.fold()
    clock.advance(days=4, minutes=2)
    assert await store.runs.prune_minutes() == 2
    assert await store.runs.prune_minutes() == 0
    assert len(await store.runs.minutes(start, start + 6 * DAY)) == 1
    assert sum(one.runs for one in await store.runs.totals()) == 2


async def test_minutes_of_more_than_a_week_are_refused(store: Store, clock: FakeClock) -> None:
    with pytest.raises(InvalidInput, match="since"):
        await store.runs.minutes(clock.now() - 8 * DAY, clock.now())


@pytest.mark.parametrize("kind", ["sqlite-file", "postgres"])
async def test_folding_while_runs_end_loses_and_doubles_nothing(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    server: PostgresServer | None = request.getfixturevalue("postgres_server") if kind == "postgres" else None
    with fresh_url(kind, tmp_path, server) as url:
        clock = FakeClock()
        stores = [open_store(url, rng=Random(seed)).at(clock) for seed in range(4)]
        seen: list[int] = []
        is_over = asyncio.Event()

        async def work(store: Store) -> None:
            for _ in range(8):
                await store.enqueue([a_job(f"task-{place % 3}") for place in range(20)])
                for job in await claim(store, 20):
                    await end(store, clock, job)

        async def fold(store: Store) -> None:
            while not is_over.is_set():
                await store.runs.fold(limit=7)
                seen.append(sum(one.runs for one in await store.runs.totals()))

        async def watch() -> None:
            await asyncio.gather(work(stores[0]), work(stores[1]))
            is_over.set()

        await asyncio.gather(watch(), fold(stores[2]), fold(stores[3]))
        while await stores[0].runs.fold():
            pass
        ended = (await execute(stores[0], "select count(*) from windlass_executions"))[0][0]
        assert sum(one.runs for one in await stores[0].runs.totals()) == ended
        assert (await execute(stores[0], "select count(*) from windlass_run_deltas"))[0][0] == 0
        whole = span(await stores[0].runs.minutes(clock.now() - DAY, clock.now() + DAY))
        assert whole is not None
        assert whole.finished == whole.runs.total == whole.waits.total == ended
        for store in stores:
            await store.aclose()


async def test_stats_of_a_job_as_the_interval_scheduler_shows_them(store: Store, clock: FakeClock) -> None:
    job_id = await enqueue_one(store, a_job(recurrence=recurring(), run_at=clock.now(), max_attempts=5))
    nothing = await store.runs.job(job_id)
    assert (nothing.total_executions, nothing.average_duration_ms, nothing.success_rate) == (0, None, 0.0)
    assert nothing.next_scheduled_at == clock.now()
    started = next_at = clock.now()
    for outcome in (None, failure(), None, Snoozed(timedelta(minutes=1)), None):
        await due(store)
        job = await claim_one(store)
        clock.advance(seconds=2)
        await end(store, clock, job, outcome)
        started, next_at = job.claimed_at, (await store.get(job_id)).run_at
        clock.advance(seconds=3600)
    found = await store.runs.job(job_id)
    assert (found.total_executions, found.successful_runs, found.failed_runs, found.success_rate) == (4, 3, 1, 0.75)
    assert (found.average_duration_ms, found.last_execution_at, found.next_scheduled_at) == (2000, started, next_at)
    await due(store)
    job = await claim_one(store)
    going = await store.runs.job(job_id)
    assert (going.total_executions, going.last_execution_at, going.next_scheduled_at) == (4, job.claimed_at, None)
    for unknown in (job_id + 1, 0, -1, 2**70):
        with pytest.raises(JobNotFound):
            await store.runs.job(unknown)


async def test_queue_stats_as_the_async_jobs_system_shows_them(store: Store, clock: FakeClock) -> None:
    empty = await store.insights.queue()
    assert (empty.pending, empty.processing, empty.failed, empty.oldest_pending_minutes) == (0, 0, 0, 0)
    await fail_for_good(store, clock)
    await end(store, clock, await running(store, a_job(max_attempts=3)), failure())
    await running(store)
    await enqueue_one(store, a_job(delay=timedelta(hours=2)))
    await enqueue_one(store, a_job("old", priority=-5))
    clock.advance(minutes=3)
    await enqueue_one(store, a_job("old", priority=5))
    await enqueue_one(store, a_job("new", lane="fast"))
    clock.advance(minutes=2, seconds=30)
    found = await store.insights.queue()
    assert (found.pending, found.processing, found.failed, found.scheduled, found.oldest_pending_minutes) == (3, 1, 1, 1, 5)


async def test_pending_jobs_by_priority(store: Store) -> None:
    await store.enqueue([a_job(priority=priority) for priority in (5, 0, 5, -1, 0, 0)])
    await enqueue_one(store, a_job(priority=9, delay=timedelta(hours=1)))
    assert await store.insights.priorities() == ({5: 2, 0: 3, -1: 1}, True)
