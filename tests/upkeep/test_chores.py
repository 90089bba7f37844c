"""What upkeep does for a database, by one instance or by five at once."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import timedelta
from random import Random

import pytest

from tests.store.builders import a_job, a_lease, all_jobs, end, enqueue_one, recurring, running
from tests.store.test_retention import numbers, with_history
from tests.support.stores import memory_store
from windlass.clock import DatabaseClock
from windlass.core.audit import Actor
from windlass.core.breaker import BreakerSpec
from windlass.core.chore import Chore
from windlass.core.job import JobState
from windlass.core.letters import LetterFilter
from windlass.core.worker import NewWorker
from windlass.errors import StoreUnavailable
from windlass.store import Store
from windlass.testing import FakeClock
from windlass.upkeep.duty import Duty, Round
from windlass.upkeep.loop import Upkeep, UpkeepOptions

Fleet = Callable[..., list[Upkeep]]
instances = pytest.mark.parametrize("count", [1, 5])
SHARED = {
    "fold",
    "age",
    "prune",
    "prune-logs",
    "prune-minutes",
    "prune-workers",
    "prune-breaker-events",
    "prune-signatures",
    "prune-refusals",
    "chain-audit",
    "sample",
    "canaries",
    "alerts",
}
EVERYWHERE = {"promote", "spawn", "reclaim"}


async def all_rounds(fleet: list[Upkeep]) -> None:
    await asyncio.gather(*(upkeep.round() for upkeep in fleet))


async def chores(store: Store) -> dict[str, Chore]:
    return {chore.name: chore for chore in await store.chores.list()}


async def priorities(store: Store, *ids: int) -> list[tuple[int, int]]:
    return [(job.priority, job.base_priority) for job in [await store.get(job_id) for job_id in ids]]


@instances
async def test_aging_raises_what_has_waited_for_more_than_an_hour(
    fleet: Fleet, store: Store, clock: FakeClock, count: int
) -> None:
    runs = await enqueue_one(store)
    [held] = await store.claim(await store.slices(), 1, a_lease(length=timedelta(days=1)))
    assert held.id == runs
    low = await enqueue_one(store)
    high = await enqueue_one(store, a_job(priority=95))
    clock.advance(minutes=2)
    young = await enqueue_one(store)
    clock.advance(minutes=59)
    await all_rounds(fleet(count))
    assert await priorities(store, low, high, young, runs) == [(10, 0), (100, 95), (0, 0), (0, 0)]


@instances
@pytest.mark.parametrize(("old", "recent", "gone"), [(0, 150, 0), (60, 100, 60), (60, 90, 50)])
async def test_retention_takes_runs_that_are_old_and_beyond_the_newest_hundred(
    fleet: Fleet, plain: list[Store], clock: FakeClock, *, count: int, old: int, recent: int, gone: int
) -> None:
    job_id = await with_history(plain[0], clock, [31] * old + [29] * recent)
    await all_rounds(fleet(count))
    assert await numbers(plain[0], job_id) == list(range(gone + 1, old + recent + 1))
    assert (await chores(plain[0]))["prune"].last_rows == gone


@instances
async def test_every_chore_is_done_once_for_each_interval(fleet: Fleet, store: Store, clock: FakeClock, count: int) -> None:
    made = fleet(count)
    await all_rounds(made)
    await all_rounds(made)
    first = await chores(store)
    assert set(first) == SHARED | EVERYWHERE
    assert {chore.version for chore in first.values()} == {1}
    clock.advance(minutes=5)
    await all_rounds(made)
    again = await chores(store)
    assert {name for name, chore in again.items() if chore.version == 2} == {
        "fold",
        "age",
        "alerts",
        "chain-audit",
        "sample",
        "canaries",
    } | EVERYWHERE
    assert {chore.last_error for chore in again.values()} == {None}


async def test_a_chore_shows_when_it_ran_where_and_what_it_did(fleet: Fleet, store: Store, clock: FakeClock) -> None:
    await enqueue_one(store, a_job(delay=timedelta(seconds=1)))
    clock.advance(seconds=2)
    [upkeep] = fleet()
    await upkeep.round()
    [job] = await all_jobs(store)
    assert job.state is JobState.PENDING
    clock.advance(seconds=30)
    await upkeep.round()
    shown = await chores(store)
    assert (shown["promote"].last_rows, shown["promote"].worker, shown["promote"].last_run_at) == (1, "upkeep-0", clock.now())
    assert (shown["fold"].last_run_at, shown["fold"].last_error) == (clock.now(), None)
    assert shown["fold"].last_duration_ms is not None


async def test_one_round_promotes_spawns_and_reclaims(fleet: Fleet, store: Store, clock: FakeClock) -> None:
    await enqueue_one(store, a_job("spawned", recurrence=recurring(timedelta(seconds=30)), spawn=True))
    lost = await running(store)
    [upkeep] = fleet(1, options=UpkeepOptions(lease=timedelta(seconds=1)))
    await upkeep.round()
    clock.advance(seconds=40)
    # Contact must have been steady for one lease before anything is taken back.
    for _ in range(5):
        await upkeep.round()
        clock.advance(milliseconds=400)
    assert (await store.get(lost.id)).state is JobState.PENDING
    assert [job.state for job in await all_jobs(store) if job.task == "spawned" and not job.spawn] == [JobState.PENDING]


async def test_time_without_any_lease_counts_as_contact(fleet: Fleet, store: Store, clock: FakeClock) -> None:
    [upkeep] = fleet(1, options=UpkeepOptions(lease=timedelta(seconds=1)))
    for _ in range(6):
        await upkeep.round()
        clock.advance(milliseconds=400)
    await upkeep.round()
    await store.enqueue([a_job()])
    [job] = await store.claim(await store.slices(), 1, a_lease(length=timedelta(seconds=1)))
    # A contact that began with the lease would have to wait for longer than it lasts.
    for _ in range(3):
        clock.advance(milliseconds=400)
        await upkeep.round()
    assert (await store.get(job.id)).state is not JobState.RUNNING


async def test_a_round_that_found_nothing_again_is_not_written_twice(fleet: Fleet, store: Store, clock: FakeClock) -> None:
    found = [0, 0, 3, 0, 0]

    async def count(_cursor: str | None) -> Round:
        took = timedelta(milliseconds=len(found))
        return Round(found.pop(0), took=took)

    [upkeep] = fleet(1, duties=[Duty("count", timedelta(minutes=1), count)])
    shown = []
    while found:
        await upkeep.round()
        chore = (await chores(store))["count"]
        shown.append((chore.last_rows, chore.last_duration_ms))
        clock.advance(minutes=1)
    # The second and the fifth took another time than is recorded.
    assert shown == [(0, 5), (0, 5), (3, 3), (0, 2), (0, 2)]


async def test_canaries_are_looked_after_as_soon_as_there_are_any(fleet: Fleet, store: Store, clock: FakeClock) -> None:
    [upkeep] = fleet()
    await upkeep.round()
    assert (await chores(store))["canaries"].due_at == clock.now() + timedelta(minutes=1)
    clock.advance(seconds=10)
    lost = await enqueue_one(store)
    await store.bury([lost], "mailbox full")
    await store.canaries.start(LetterFilter(), size=1, by="ann")
    assert (await chores(store))["canaries"].due_at == clock.now()
    await upkeep.round()
    assert (await chores(store))["canaries"].due_at == clock.now() + UpkeepOptions().canary_interval


async def test_those_who_claim_are_told_of_pending_jobs_and_not_of_an_empty_queue(plain: list[Store]) -> None:
    store, told = plain[0], asyncio.Event()
    options = UpkeepOptions(poll_interval=timedelta(milliseconds=10))
    upkeep = Upkeep(store, clock=DatabaseClock(await store.clock()), options=options, promoted=told.set)
    keeping = asyncio.create_task(upkeep.run())
    try:
        async with asyncio.timeout(30):
            while "promote" not in await chores(store):  # noqa: ASYNC110 - it is another's doing
                await asyncio.sleep(0.01)
            told.clear()
            await asyncio.sleep(0.2)
            assert not told.is_set()
            # Nobody wakes the upkeep: it finds the job by its own look.
            await store.enqueue([a_job()])
            await told.wait()
    finally:
        keeping.cancel()
        await asyncio.gather(keeping, return_exceptions=True)


async def test_a_paused_chore_is_left_by_everybody_until_it_is_resumed(fleet: Fleet, store: Store, clock: FakeClock) -> None:
    await enqueue_one(store)
    clock.advance(minutes=61)
    operator = store.acting(Actor("ada"))
    await operator.chores.pause("age")
    made = fleet(5)
    await all_rounds(made)
    assert [job.priority for job in await all_jobs(store)] == [0]
    assert (await chores(store))["age"].version == 0
    await operator.chores.resume("age")
    await all_rounds(made)
    assert [job.priority for job in await all_jobs(store)] == [10]


@pytest.mark.parametrize("chore", sorted(EVERYWHERE))
async def test_what_every_process_does_can_be_paused_too_and_the_log_says_so(
    fleet: Fleet, store: Store, clock: FakeClock, caplog: pytest.LogCaptureFixture, *, chore: str
) -> None:
    await enqueue_one(store, a_job(delay=timedelta(seconds=1)))
    await enqueue_one(store, a_job("spawned", recurrence=recurring(timedelta(seconds=10)), spawn=True))
    clock.advance(seconds=20)
    await store.chores.pause(chore)
    [upkeep] = fleet()
    with caplog.at_level(logging.WARNING, logger="windlass.upkeep"):
        await upkeep.round()
        await upkeep.round()
    assert [record.getMessage() for record in caplog.records] == [
        f"{chore} is paused by an operator; jobs wait for it until: windlass chores resume {chore}"
    ]
    jobs = await all_jobs(store)
    assert any(job.task == "spawned" and not job.spawn for job in jobs) == (chore != "spawn")
    assert (jobs[0].state is JobState.PENDING) == (chore != "promote")
    await store.chores.resume(chore)
    await upkeep.round()
    jobs = await all_jobs(store)
    assert any(job.task == "spawned" and not job.spawn for job in jobs)
    assert jobs[0].state is JobState.PENDING


async def test_a_failing_chore_is_recorded_and_stops_nobody(
    fleet: Fleet, store: Store, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    async def break_(_cursor: str | None) -> Round:
        raise ZeroDivisionError("by nought")

    asked: list[str | None] = []

    async def count(cursor: str | None) -> Round:
        asked.append(cursor)
        return Round(7)

    minute = timedelta(minutes=1)
    [upkeep] = fleet(1, duties=[Duty("broken", minute, break_), Duty("sound", minute, count)])
    with caplog.at_level(logging.WARNING, logger="windlass.upkeep"):
        await upkeep.round()
        clock.advance(minutes=1)
        await upkeep.round()
    shown = await chores(store)
    assert (shown["broken"].last_error, shown["broken"].version) == ("ZeroDivisionError: by nought", 2)
    assert (shown["sound"].last_rows, asked) == (7, [None, None])
    assert [record.getMessage() for record in caplog.records] == ["upkeep: broken: ZeroDivisionError: by nought"]


async def test_a_round_that_meets_its_bound_comes_again_soon_and_goes_on(fleet: Fleet, store: Store, clock: FakeClock) -> None:
    asked: list[str | None] = []

    async def sweep(cursor: str | None) -> Round:
        asked.append(cursor)
        return Round(10, has_more=len(asked) < 3, cursor=str(len(asked)) if len(asked) < 3 else None)

    made = fleet(5, duties=[Duty("long", timedelta(hours=1), sweep)])
    for _ in range(5):
        pauses = await asyncio.gather(*(upkeep.round() for upkeep in made))
        assert len(asked) > 2 or min(pauses) <= timedelta(milliseconds=100)
        clock.advance(milliseconds=100)
    assert asked == [None, "1", "2"]
    assert (await chores(store))["long"].due_at == clock.now() + timedelta(hours=1) - timedelta(milliseconds=300)


class Away:
    """A list of chores that cannot be read."""

    async def list(self) -> list[Chore]:
        raise StoreUnavailable("the server is restarting")


async def test_an_outage_is_mentioned_once_and_outlived(
    fleet: Fleet, store: Store, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    [upkeep] = fleet()
    with monkeypatch.context() as patch, caplog.at_level(logging.WARNING, logger="windlass.upkeep"):
        patch.setattr(Store, "chores", Away())
        await upkeep.round()
        await upkeep.round()
    assert [record.getMessage() for record in caplog.records][:1] == [
        "upkeep: the list of chores: StoreUnavailable: the server is restarting"
    ]
    await upkeep.round()
    assert set(await chores(store)) == SHARED | EVERYWHERE


async def test_every_minute_has_its_sample(fleet: Fleet, store: Store, clock: FakeClock) -> None:
    upkeep = fleet(2)
    for waiting in range(3):
        await enqueue_one(store)
        await all_rounds(upkeep)
        assert [one.waiting for one in (await store.insights.overview()).samples] == list(range(1, waiting + 2))
        clock.advance(minutes=1)


async def test_what_a_fleet_leaves_behind_goes_after_its_time(fleet: Fleet, store: Store, clock: FakeClock) -> None:
    mail = BreakerSpec("mail", threshold=3)
    for _ in range(2):
        await store.breakers.record(mail, succeeded=False, failures=3)
        await store.breakers.reset("mail")
    await store.workers.register(NewWorker(id="w", host="host", pid=1, version="1"))
    await store.acting(Actor("ada")).lanes.pause("slow")
    await end(store, clock, await running(store))
    [upkeep] = fleet()
    await upkeep.round()
    assert len(await store.breakers.history("mail")) == 4
    assert [entry.place for entry in await store.audit.list()] == [1]
    clock.advance(days=31)
    await upkeep.round()
    assert [event.state for event in await store.breakers.history("mail")] == ["closed"]
    assert await store.workers.list() == []
    assert await all_jobs(store) == []


async def test_lost_leases_are_taken_back_however_rarely_one_is_told_to_look() -> None:
    store = memory_store(Random(1))
    await store.enqueue([a_job()])
    [job] = await store.claim(await store.slices(), 1, a_lease(length=timedelta(milliseconds=10)))
    options = UpkeepOptions(lease=timedelta(milliseconds=200), reclaim_interval=timedelta(hours=1))
    upkeep = asyncio.create_task(Upkeep(store, clock=DatabaseClock(await store.clock()), options=options).run())
    try:
        async with asyncio.timeout(20):
            while (await store.get(job.id)).state is JobState.RUNNING:  # noqa: ASYNC110 - it is another's doing
                await asyncio.sleep(0.01)
    finally:
        upkeep.cancel()
        await asyncio.gather(upkeep, return_exceptions=True)
        await store.aclose()
