"""One look shows the same numbers everywhere: depth, rates, percentiles, pools, lateness."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tests.store.builders import a_job, a_lease, claim_one, due, end, enqueue_one, fail_for_good, failure, running
from tests.store.test_runs import run_for
from tests.support.raw import execute
from windlass.core.insights import MOST_NAMES
from windlass.core.job import JobState, RunReason
from windlass.core.outcome import Run
from windlass.core.payload import encode_object
from windlass.core.worker import NewWorker
from windlass.errors import InvalidInput
from windlass.store import Store
from windlass.store.calls import insights
from windlass.testing import FakeClock

MINUTE = timedelta(minutes=1)


async def run_one(  # noqa: PLR0917 - read as a sentence
    store: Store, clock: FakeClock, task: str, lane: str, ms: int = 100, outcome: Any = None
) -> None:
    await enqueue_one(store, a_job(task, lane=lane))
    job = await claim_one(store)
    clock.advance(seconds=ms / 1000)
    assert await end(store, clock, job, outcome, run=Run(job.claimed_at, clock.now()))


async def test_tasks_and_lanes_have_their_own_numbers(store: Store, clock: FakeClock) -> None:
    for _ in range(3):
        await run_one(store, clock, "mail", "fast", 40)
    await run_one(store, clock, "mail", "slow", 4000)
    await run_one(store, clock, "crawl", "slow", 900, failure())
    await enqueue_one(store, a_job("mail", lane="fast", priority=7, payload=encode_object({"to": "x" * 90})))
    clock.advance(seconds=30)
    for is_folded in (False, True):
        if is_folded:
            await store.runs.fold()
        found = await store.insights.summary()
        assert set(found.tasks) == {"mail", "crawl"}
        assert set(found.lanes) == {"fast", "slow"}
        fast, slow, mail = found.lanes["fast"], found.lanes["slow"], found.tasks["mail"]
        assert (fast.jobs[JobState.COMPLETED], fast.jobs[JobState.PENDING], slow.jobs[JobState.COMPLETED]) == (3, 1, 1)
        assert fast.run.p99 is not None
        assert fast.run.p99 < 50
        assert slow.run.p99 is not None
        assert slow.run.p99 > 3000
        assert (fast.error_rate, slow.error_rate, found.tasks["crawl"].error_rate) == (0.0, 0.5, 1.0)
        assert mail.run.average == pytest.approx((3 * 40 + 4000) / 4)
        assert fast.oldest_pending == timedelta(seconds=30) == found.total.oldest_pending
        assert slow.oldest_pending == timedelta()
        seconds = (found.present.at - found.since).total_seconds()
        assert found.total.out_per_second == pytest.approx(5 / seconds)
        assert found.total.in_per_second == pytest.approx(6 / seconds)
        assert fast.in_per_second == pytest.approx(4 / seconds)
        assert found.priorities == ({7: 1}, True)
        assert mail.payload_bytes is not None
        assert (mail.payload_bytes.looked_at, mail.payload_bytes.largest > 90) == (5, True)
        assert found.tasks["crawl"].payload_bytes is not None
        assert found.left_out == 0


async def test_every_face_says_the_same_of_one_moment(store: Store, clock: FakeClock) -> None:
    await run_one(store, clock, "a", "x")
    await enqueue_one(store, a_job("a", lane="x"))
    await enqueue_one(store, a_job("b", lane="y", run_at=clock.now() + MINUTE))
    summary, queue, scheduler = await store.insights.summary(), await store.insights.queue(), await store.insights.scheduler()
    overview = await store.insights.overview()
    assert summary.total.jobs == scheduler.jobs
    assert queue.pending == summary.total.jobs[JobState.PENDING] == 1
    assert queue.scheduled == summary.total.jobs[JobState.SCHEDULED] == 1
    for flows in (summary.tasks.values(), summary.lanes.values()):
        assert sum((Counter(one.jobs) for one in flows), Counter()) == Counter(summary.total.jobs)
    assert sum(one.jobs for one in overview.counts) == overview.page.total == len(overview.page.jobs) == 3
    assert sum(sum(lane.counts.values()) for lane in overview.lanes) == 3
    assert [one.finished for one in overview.minutes] == [1]


async def test_a_look_sees_one_moment_while_others_write(stores: list[Store]) -> None:
    """Every enqueue is one job in the counts of all, of its lane and in the list, or in none of them."""
    writer, reader = stores[:2]
    is_done = False

    async def write() -> None:
        nonlocal is_done
        for number in range(60):
            await writer.enqueue([a_job(f"task-{number % 3}", lane=f"lane-{number % 2}")])
        is_done = True

    async def read() -> None:
        while not is_done:
            seen = await reader.insights.overview()
            in_all = sum(one.jobs for one in seen.counts)
            assert in_all == seen.page.total == sum(sum(lane.counts.values()) for lane in seen.lanes)
            summary = await reader.insights.summary()
            assert bool(summary.present.oldest) == bool(summary.total.jobs[JobState.PENDING])

    await asyncio.gather(write(), read())
    assert sum(one.jobs for one in (await reader.insights.overview()).counts) == 60


async def test_the_live_view_shows_the_oldest_run_and_the_newest_failure_first(store: Store, clock: FakeClock) -> None:
    await store.workers.register(NewWorker(id="worker-1", host="h", pid=1, version="1"))
    failed, held = [], []
    for _ in range(2):
        failed.append((await fail_for_good(store, clock)).id)
        clock.advance(seconds=1)
        held.append((await running(store)).id)
        clock.advance(seconds=1)
    found = await store.insights.top()
    assert [one.id for one in found.slowest] == held
    assert [one.id for one in found.failing] == failed[::-1]
    assert [(one.id, len(one.jobs)) for one in found.workers] == [("worker-1", 2)]
    assert found.summary == await store.insights.summary()
    bare = await store.insights.top({"failing"}, jobs=1)
    assert ([one.id for one in bare.failing], bare.slowest, bare.workers) == (failed[1:], (), ())
    assert bare.summary.total == replace(found.summary.total, retry_success_rate=None, payload_bytes=None)


async def test_a_queue_that_drains_says_for_how_long(store: Store, clock: FakeClock) -> None:
    await store.enqueue([a_job() for _ in range(60)])
    clock.advance(minutes=6)
    for _ in range(20):
        job = await claim_one(store)
        assert await end(store, clock, job, run=Run(job.claimed_at, clock.now()))
    clock.advance(seconds=20)
    found = await store.insights.summary()
    seconds = (found.present.at - found.since).total_seconds()
    assert found.total.in_per_second == 0
    assert found.total.drain == timedelta(seconds=round(40 / (20 / seconds), 1))
    await store.enqueue([a_job() for _ in range(100)])
    assert (await store.insights.summary()).total.drain is None


async def test_arrivals_beyond_the_sample_are_estimated(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(insights, "_MOST_ARRIVALS", 100)
    await store.enqueue([a_job(f"task-{number % 2}") for number in range(400)])
    found = await store.insights.summary()
    seconds = (found.present.at - found.since).total_seconds()
    assert found.total.in_per_second * seconds == pytest.approx(400, rel=0.02)
    assert found.tasks["task-1"].in_per_second * seconds == pytest.approx(200, rel=0.02)


async def test_retries_that_helped_are_a_rate(store: Store, clock: FakeClock) -> None:
    for outcome in (None, None, None, failure()):
        await enqueue_one(store, a_job(max_attempts=2))
        assert await end(store, clock, await claim_one(store), failure())
        clock.advance(minutes=10)
        await due(store)
        assert await end(store, clock, await claim_one(store), outcome)
    assert (await store.insights.summary()).tasks["work"].retry_success_rate == 0.75
    await run_for(store, clock, 10, task="once")
    assert (await store.insights.summary()).tasks["once"].retry_success_rate is None


async def test_pools_of_live_workers_are_used_by_what_runs(store: Store, clock: FakeClock) -> None:
    for name in ("one", "two"):
        await store.workers.register(NewWorker(id=name, host="h", pid=1, version="1", pools='{"fast":2,"*":3}', tasks='["work"]'))
    await store.enqueue([a_job(lane="fast") for _ in range(3)] + [a_job(lane="other")])
    await store.claim(await store.slices(), 10, a_lease("one"))
    found = (await store.insights.summary()).present
    assert [(one.lane, one.slots, one.busy) for one in found.pools] == [("*", 6, 2), ("fast", 4, 2)]
    assert (found.workers, found.pools[1].use) == (2, 0.5)
    clock.advance(minutes=5)
    assert (await store.insights.summary()).present.pools == []


async def test_lost_leases_and_late_schedules_are_seen(store: Store, clock: FakeClock) -> None:
    await enqueue_one(store, a_job(run_at=clock.now() + MINUTE))
    assert (await store.insights.summary()).present.lateness == timedelta()
    clock.advance(minutes=3)
    assert (await store.insights.summary()).present.lateness == 2 * MINUTE
    await due(store)
    assert (await store.insights.summary()).present.lateness == timedelta()
    await claim_one(store)
    clock.advance(minutes=3)
    assert await store.reclaim()
    found = await store.insights.summary()
    assert found.present.lost_leases == (await store.insights.scheduler()).lost_leases == 1
    assert {one.reason for one in found.present.totals} == {RunReason.LEASE_EXPIRED}


async def test_counters_of_monitors_survive_the_pruning_of_minutes(store: Store, clock: FakeClock) -> None:
    await run_for(store, clock, 1500, wait_ms=20)
    await run_for(store, clock, 15, failure())
    before = (await store.insights.scrape()).times
    await store.runs.fold()
    assert (await store.insights.scrape()).times == before
    clock.advance(days=9)
    assert await store.runs.prune_minutes() > 0
    after = await store.insights.scrape()
    assert after.times == before
    [one] = after.times
    assert (one.task, one.runs, one.wait_ms, one.duration_ms) == ("work", 2, 20, 1515)
    assert one.waits.total == one.durations.total == 2
    await run_for(store, clock, 3)
    await store.runs.fold()
    [more] = (await store.insights.scrape()).times
    assert (more.runs, more.durations.total) == (3, 3)


async def test_a_scrape_has_the_store_and_what_alarms(store: Store) -> None:
    found = await store.insights.scrape()
    assert found.size_bytes > 100_000
    assert found.schema_version >= 13
    assert found.present.alerts == 0
    at = "1" if store.database.dialect == "sqlite" else "now()"
    columns = "rule, message, since, raised_at, seen_at"
    await execute(store, f"insert into windlass_alerts ({columns}) values ('r', 'm', {at}, {at}, {at})")
    assert (await store.insights.scrape()).present.alerts == 1


async def test_what_is_shown_equals_a_recount_while_four_drain(stores: list[Store], clock: FakeClock) -> None:
    """Folds and looks go on meanwhile; no number is ever too large, none is lost in the end."""
    store = stores[0]
    jobs = 400
    await store.enqueue([a_job(f"task-{number % 3}", lane=f"lane-{number % 2}") for number in range(jobs)])
    slices = await store.slices()
    seen = [0]

    async def drain(own: Store) -> None:
        while claimed := await own.claim(slices, 7, a_lease(f"worker-{id(own)}")):
            for job in claimed:
                assert await end(own, clock, job, run=Run(job.claimed_at, clock.now()))

    async def look() -> None:
        while seen[-1] < jobs:
            await store.runs.fold(50)
            found = await stores[-1].insights.scrape()
            assert sum(one.jobs for one in found.present.counts) == jobs
            runs = sum(one.runs for one in found.present.totals)
            assert sum(one.runs for one in found.times) == runs == sum(one.durations.total for one in found.times)
            assert runs >= seen[-1]
            completed = sum(one.jobs for one in found.present.counts if one.state is JobState.COMPLETED)
            assert completed == runs
            seen.append(runs)

    await asyncio.gather(*(drain(one) for one in (stores * 4)[:4]), look())
    recounted = await execute(store, "select task, lane, state, count(*) from windlass_jobs group by 1, 2, 3")
    found = (await store.insights.scrape()).present
    assert {(one.task, one.lane, one.state.value): one.jobs for one in found.counts} == {row[:3]: row[3] for row in recounted}
    [[ended]] = await execute(store, "select count(*) from windlass_executions")
    assert ended == jobs
    summary = await store.insights.summary()
    assert sum(flow.jobs[JobState.COMPLETED] for flow in summary.lanes.values()) == jobs


async def test_a_series_has_every_step(store: Store, clock: FakeClock) -> None:
    await run_one(store, clock, "mail", "fast", 40)
    clock.advance(minutes=2)
    await run_one(store, clock, "mail", "slow", 40)
    await store.runs.fold()
    await run_one(store, clock, "crawl", "slow", 700, failure())

    async def ended(**wanted: Any) -> list[tuple[int, int]]:
        found = await store.insights.series(**wanted)
        return [(one.completed, one.failed) for one in found.points if one.completed + one.failed]

    whole = await store.insights.series()
    assert len(whole.points) in {60, 61}
    assert {(two.at - one.at) for one, two in zip(whole.points, whole.points[1:], strict=False)} == {MINUTE}
    assert await ended() == [(1, 0), (1, 1)]
    assert await ended(task="mail") == [(1, 0), (1, 0)]
    assert await ended(lane="slow") == [(1, 1)]
    assert await ended(task="mail", lane="slow") == [(1, 0)]
    assert await ended(task="none") == []
    [point] = (await store.insights.series(from_at=clock.now() - MINUTE, to_at=clock.now(), step=60 * MINUTE)).points[-1:]
    assert (point.completed, point.failed) == (2, 1)
    assert point.out_per_second == pytest.approx(3 / 3600)


@pytest.mark.parametrize(
    ("wanted", "field"),
    [
        ({"step": timedelta(seconds=30)}, "step"),
        ({"step": timedelta(seconds=90)}, "step"),
        ({"task": ""}, "task"),
        ({"lane": "x" * 300}, "lane"),
        ({"back": timedelta(days=8), "step": timedelta(hours=1)}, "from"),
        ({"back": timedelta(days=2)}, "step"),
        ({"back": -MINUTE}, "from"),
    ],
)
async def test_a_series_that_cannot_be_had_names_what_is_wrong(
    store: Store, clock: FakeClock, wanted: dict[str, Any], field: str
) -> None:
    back = wanted.pop("back", None)
    if back is not None:
        wanted["from_at"] = clock.now() - back
    with pytest.raises(InvalidInput, match=f"^{field}: "):
        await store.insights.series(**wanted)


async def test_a_summary_lists_no_more_names_than_it_may(store: Store) -> None:
    await store.enqueue([a_job(f"task-{number:04}") for number in range(MOST_NAMES + 3)])
    found = await store.insights.summary()
    assert (len(found.tasks), found.left_out) == (MOST_NAMES, 3)
    assert found.total.jobs[JobState.PENDING] == MOST_NAMES + 3
