"""Retention: what goes, what stays, whoever else is at work."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta

import psycopg
import pytest

from tests.store.builders import a_job, all_jobs, claim_one, end, enqueue_one, fail_for_good, recurring, running
from tests.support.raw import execute
from windlass.core.job import JobState, UniqueScope
from windlass.core.outcome import Cancelled
from windlass.core.retention import Pruned, Retention
from windlass.errors import InvalidInput, JobNotFound
from windlass.store import Store
from windlass.store.batches import microseconds
from windlass.store.calls import control
from windlass.store.postgres import Postgres
from windlass.store.sqlite import Sqlite
from windlass.testing import FakeClock


def literal(store: Store, at: datetime) -> str:
    return str(microseconds(at)) if isinstance(store.database, Sqlite) else f"timestamptz '{at.isoformat()}'"


async def with_history(store: Store, clock: FakeClock, ages: Sequence[float], *, is_running: bool = False) -> int:
    """Make a recurring job whose runs ended so many days ago, oldest first."""
    job_id = await enqueue_one(store, a_job(recurrence=recurring(), run_at=clock.now()))
    ends = [literal(store, clock.now() - timedelta(days=age)) for age in ages]
    for start in range(0, len(ends), 500):
        rows = ",".join(
            f"({job_id}, {n}, 1, {-n}, 'w', {at}, {at}, 0, 'completed')"
            for n, at in enumerate(ends[start : start + 500], start + 1)
        )
        columns = "job_id, number, attempt, token, worker, started_at, finished_at, wait_ms, status"
        await execute(store, f"insert into windlass_executions ({columns}) values {rows}")
    await execute(store, f"update windlass_jobs set executions = {len(ages)} where id = {job_id}")
    if is_running:
        await claim_one(store)
    return job_id


async def numbers(store: Store, job_id: int) -> list[int]:
    rows = await execute(store, f"select number from windlass_executions where job_id = {job_id} order by number")
    return [number for (number,) in rows]


async def acknowledge(store: Store, at: datetime) -> None:
    change = f"acknowledged_at = {literal(store, at)}, acknowledged_by = 'ada'"
    await execute(store, f"update windlass_dead_letters set {change} where closed_at is null")


async def count(store: Store, table: str) -> int:
    [[rows]] = await execute(store, f"select count(*) from windlass_{table}")
    return int(rows)


@pytest.mark.parametrize(
    ("old", "recent", "gone"),
    [(0, 150, 0), (60, 100, 60), (60, 90, 50), (80, 0, 0), (0, 0, 0), (101, 0, 1), (100, 0, 0), (0, 101, 0)],
)
async def test_a_run_goes_only_when_it_is_both_old_and_beyond_the_newest(
    store: Store, clock: FakeClock, *, old: int, recent: int, gone: int
) -> None:
    job_id = await with_history(store, clock, [31] * old + [29] * recent)
    assert await store.retention.prune() == Pruned(executions=gone)
    assert await numbers(store, job_id) == list(range(gone + 1, old + recent + 1))
    assert await store.retention.prune() == Pruned()


async def test_a_running_one_is_no_run_that_is_kept(store: Store, clock: FakeClock) -> None:
    job_id = await with_history(store, clock, [31] * 101, is_running=True)
    assert (await store.retention.prune()).executions == 1
    assert await numbers(store, job_id) == list(range(2, 102))


async def test_the_limits_are_settings(store: Store, clock: FakeClock) -> None:
    job_id = await with_history(store, clock, [9, 8, 7, 6, 5])
    rules = Retention(keep_executions=2, keep=timedelta(days=6, hours=12))
    assert (await store.retention.prune(rules)).executions == 3
    assert await numbers(store, job_id) == [4, 5]
    # Put back, so that the history is whole by the default rule that every store test ends with.
    await execute(store, f"delete from windlass_executions where job_id = {job_id}")
    await execute(store, f"update windlass_jobs set executions = 0 where id = {job_id}")


async def test_a_long_history_goes_in_parts(store: Store, clock: FakeClock) -> None:
    job_id = await with_history(store, clock, [40] * 2350 + [1] * 50)
    other = await with_history(store, clock, [40] * 130)
    assert (await store.retention.prune(limit=1)).executions == 2300 + 30
    assert await numbers(store, job_id) == list(range(2301, 2401))
    assert await numbers(store, other) == list(range(31, 131))


async def test_a_clock_that_went_back_leaves_no_gap(store: Store, clock: FakeClock) -> None:
    job_id = await with_history(store, clock, [40, 40, 1, 40] + [1] * 100)
    assert (await store.retention.prune()).executions == 2
    assert await numbers(store, job_id) == list(range(3, 105))


async def test_finished_jobs_go_with_all_that_is_theirs(store: Store, clock: FakeClock) -> None:
    done = await running(store)
    await end(store, clock, done)
    gave_up = await running(store)
    await end(store, clock, gave_up, Cancelled("no"))
    await store.cancel([await enqueue_one(store)])
    await fail_for_good(store, clock)
    await acknowledge(store, clock.now())
    at = literal(store, clock.now())
    await execute(store, f"insert into windlass_idempotency (job_id, key, created_at) values ({done.id}, 'k', {at})")
    await execute(
        store,
        f"insert into windlass_items (collection, key, job_id, data, created_at) values ('c', 'k', {done.id}, '{{}}', {at})",
    )
    clock.advance(days=30)
    assert await store.retention.prune() == Pruned()
    clock.advance(seconds=1)
    assert await store.retention.prune() == Pruned(jobs=4)
    left = [await count(store, table) for table in ("jobs", "bodies", "executions", "idempotency", "items", "dead_letters")]
    assert left == [0, 0, 0, 0, 1, 1]
    assert await store.count_jobs() == []


async def test_what_is_still_in_use_never_goes(store: Store, clock: FakeClock) -> None:
    kept = {
        "open letter": (await fail_for_good(store, clock)).id,
        "waiting": await enqueue_one(store, a_job("waiting", delay=timedelta(days=9999))),
    }
    forever = await running(store, a_job(unique_key="k", unique_scope=UniqueScope.FOREVER))
    await end(store, clock, forever)
    ended = await running(store, a_job(recurrence=recurring(max_runs=1), run_at=clock.now()))
    await end(store, clock, ended)
    leased = await running(store, a_job("leased"))
    await store.cancel([leased.id])
    retried = await fail_for_good(store, clock, a_job("retried", max_attempts=1))
    await store.retry([retried.id])
    kept |= {"forever": forever.id, "recurring": ended.id, "leased": leased.id, "retried": retried.id}
    clock.advance(days=365)
    assert await store.retention.prune() == Pruned(letters=1)
    assert {job.id for job in await all_jobs(store)} == set(kept.values())
    assert len(await store.list_dead_letters(kept["open letter"])) == 1


async def test_a_job_stays_for_its_days_after_it_came_back(store: Store, clock: FakeClock) -> None:
    dead = await fail_for_good(store, clock)
    clock.advance(days=40)
    await store.retry([dead.id])
    await end(store, clock, await claim_one(store))
    assert (await store.retention.prune()).jobs == 0
    clock.advance(days=31)
    assert (await store.retention.prune()).jobs == 1


async def test_letters_go_after_they_were_dealt_with(store: Store, clock: FakeClock) -> None:
    closed = await fail_for_good(store, clock, a_job("closed", max_attempts=1))
    await store.retry([closed.id])
    clock.advance(days=50)
    await fail_for_good(store, clock, a_job("acknowledged", max_attempts=1, priority=1))
    await acknowledge(store, clock.now())
    await fail_for_good(store, clock, a_job("open", max_attempts=1, priority=1))
    clock.advance(days=40, seconds=1)
    assert (await store.retention.prune()).letters == 1
    clock.advance(days=50)
    assert (await store.retention.prune()).letters == 1
    clock.advance(days=9999)
    assert (await store.retention.prune()).letters == 0
    assert await execute(store, "select task from windlass_dead_letters") == [("open",)]


async def test_a_failed_job_that_stays_may_outlive_its_letter(store: Store, clock: FakeClock) -> None:
    dead = await fail_for_good(store, clock, a_job(unique_key="k", unique_scope=UniqueScope.FOREVER, max_attempts=1))
    await acknowledge(store, clock.now())
    clock.advance(days=91)
    assert await store.retention.prune() == Pruned(letters=1)
    assert (await store.get(dead.id)).state is JobState.FAILED


async def test_batches_step_over_what_stays(store: Store, clock: FakeClock) -> None:
    for place in range(12):
        scope = {"unique_key": str(place), "unique_scope": UniqueScope.FOREVER} if place % 3 else {}
        await end(store, clock, await running(store, a_job(**scope)))
    clock.advance(days=31)
    assert await store.retention.prune(limit=2) == Pruned(jobs=4)
    assert len(await all_jobs(store)) == 8


async def test_many_pruners_at_once_delete_each_row_once(stores: list[Store], clock: FakeClock) -> None:
    store = stores[0]
    job_id = await with_history(store, clock, [40] * 1300)
    clock.advance(days=-40)
    await store.enqueue([a_job() for _ in range(60)])
    for _ in range(60):
        await end(store, clock, await claim_one(store), None)
    for place in range(10):
        await fail_for_good(store, clock, a_job(f"dead-{place}", max_attempts=1, priority=1))
    await acknowledge(store, clock.now() - timedelta(days=60))
    clock.advance(days=40)
    found = await asyncio.gather(*(one.retention.prune(limit=7) for one in stores))
    total = [sum(column) for column in zip(*found, strict=True)]
    assert total == [1200, 70, 10]
    assert await numbers(store, job_id) == list(range(1201, 1301))


async def test_a_retry_beside_a_pruner_finds_the_whole_job_or_none(stores: list[Store], clock: FakeClock) -> None:
    store = stores[0]
    dead = [await fail_for_good(store, clock, a_job(f"task-{place}", max_attempts=1)) for place in range(30)]
    await acknowledge(store, clock.now())
    clock.advance(days=31)

    async def retry(rival: Store, ids: list[int]) -> int:
        return sum([len((await rival.retry([job_id])).changed) for job_id in ids])

    async def prune(rival: Store) -> int:
        return (await rival.retention.prune(limit=3)).jobs

    ids = [job.id for job in dead]
    retries = retry(stores[1], ids), retry(stores[2], ids[::-1])
    *retried, first, second = await asyncio.gather(*retries, prune(stores[3]), prune(stores[4]))
    assert sum(retried) + first + second == 30
    assert len(await all_jobs(store, JobState.PENDING)) == sum(retried)


@pytest.mark.parametrize("backend", ["postgres"], indirect=True)
async def test_a_job_that_an_operator_holds_is_left_alone(store: Store, clock: FakeClock) -> None:
    assert isinstance(store.database, Postgres)
    held = await fail_for_good(store, clock)
    await fail_for_good(store, clock, a_job("other", max_attempts=1))
    await acknowledge(store, clock.now())
    clock.advance(days=31)
    async with await psycopg.AsyncConnection.connect(store.database.dsn) as connection:
        moved = await store.run(control.retry([held.id]), connection)
        assert len(moved.changed) == 1
        assert (await store.retention.prune()).jobs == 1
        await connection.commit()
    assert (await store.retention.prune()).jobs == 0
    assert (await store.get(held.id)).state is JobState.PENDING


@pytest.mark.parametrize("backend", ["postgres"], indirect=True)
async def test_a_retry_that_waited_for_a_pruner_finds_nothing(store: Store, clock: FakeClock) -> None:
    assert isinstance(store.database, Postgres)
    dead = await fail_for_good(store, clock)
    await acknowledge(store, clock.now())
    clock.advance(days=31)
    async with await psycopg.AsyncConnection.connect(store.database.dsn) as connection:
        await connection.execute(f"delete from windlass_jobs where id = {dead.id}")
        await connection.execute(f"delete from windlass_bodies where job_id = {dead.id}")
        await connection.execute(f"delete from windlass_executions where job_id = {dead.id}")
        retrying = asyncio.create_task(store.retry([dead.id]))
        await asyncio.sleep(0.05)
        assert not retrying.done()
        await connection.commit()
        with pytest.raises(JobNotFound):
            (await retrying).one()


@pytest.mark.parametrize(
    "wrong", [{"keep_executions": 0}, {"keep": timedelta(days=-1)}, {"keep_dead": timedelta(days=-1)}, {"keep_executions": 1.5}]
)
def test_bad_limits_are_refused(wrong: dict[str, object]) -> None:
    [field] = wrong
    with pytest.raises(InvalidInput, match=field):
        Retention(**wrong)  # type: ignore[arg-type]


async def test_a_batch_out_of_range_is_refused(store: Store) -> None:
    with pytest.raises(InvalidInput, match="limit"):
        await store.retention.prune(limit=0)


async def test_a_pass_goes_on_from_where_its_last_part_ended(store: Store, clock: FakeClock) -> None:
    kept = [await with_history(store, clock, [31] * 102) for _ in range(5)]
    for _ in range(5):
        await end(store, clock, await running(store, a_job("done", priority=1)))
    clock.advance(days=31)
    cursor: str | None = None
    parts: list[int] = []
    while not parts or cursor is not None:
        swept = await store.retention.prune_some(cursor=cursor, limit=2, pages=1)
        cursor = swept.cursor
        parts.append(swept.rows)
    assert (max(parts), sum(parts)) == (4, 15)
    assert [len(await numbers(store, job_id)) for job_id in kept] == [100] * 5
    assert len(await all_jobs(store)) == 5


async def test_the_keys_of_reports_go_with_their_runs(store: Store, clock: FakeClock) -> None:
    job_id = await with_history(store, clock, [90, 80, *[1] * 100])
    for number in (1, 2, 3, 102):
        await execute(
            store,
            "insert into windlass_idempotency (job_id, key, token, answer, created_at)"
            f" values ({job_id}, 'k{number}', {-number}, '{{}}', {literal(store, clock.now())})",
        )
    await store.retention.prune()
    assert await numbers(store, job_id) == list(range(3, 103))
    kept = await execute(store, "select key from windlass_idempotency order by key")
    assert [key for (key,) in kept] == ["k102", "k3"]
