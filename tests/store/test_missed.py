"""Slots that nobody served in time: once, skip and all, for jobs that come back and for templates; and jitter."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.store.builders import a_job, claim, claim_one, due, end, enqueue_one, failure
from tests.support.raw import execute
from windlass.core.cadence import ByHandler, Cron, Every, Misfire, Overlap, Recurrence
from windlass.core.job import Job, JobState, NewJob, Promoted, WaitReason
from windlass.core.outcome import Run
from windlass.errors import InvalidInput
from windlass.store import Store
from windlass.testing import FakeClock

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
SECOND = timedelta(seconds=1)


def hourly(misfire: Misfire = Misfire.ONCE, **options: Any) -> Recurrence:
    """Describe a rule whose slots are the full hours; the clock of the tests starts at half past ten."""
    return Recurrence(cadence=Cron("@hourly"), misfire=misfire, **options)


def half_hourly(misfire: Misfire = Misfire.ONCE, **options: Any) -> Recurrence:
    return Recurrence(cadence=Every(30 * MINUTE), fixed_rate=True, misfire=misfire, **options)


async def slots_run(store: Store, clock: FakeClock, job_id: int) -> list[datetime]:
    """Run whatever is due until nothing is, each run in no time; returns the slots that were served."""
    for _ in range(50):
        await due(store)
        for job in await claim(store):
            await end(store, clock, job)
    runs = await store.list_executions(job_id)
    return [run.slot_at for run in reversed(runs) if run.slot_at is not None]


@pytest.mark.parametrize("rule", [hourly(), half_hourly(), Recurrence(cadence=Every(30 * MINUTE))], ids=str)
async def test_a_job_that_missed_many_slots_runs_once_by_default(store: Store, clock: FakeClock, rule: Recurrence) -> None:
    first = rule.first(clock.now())
    job_id = await enqueue_one(store, a_job(recurrence=rule))
    clock.advance(hours=5, minutes=10)
    assert await slots_run(store, clock, job_id) == [first]
    job = await store.get(job_id)
    assert clock.now() < job.run_at <= clock.now() + HOUR


@pytest.mark.parametrize(
    ("rule", "wait"),
    [
        (hourly(Misfire.SKIP), timedelta(minutes=20)),
        (half_hourly(Misfire.SKIP), timedelta(minutes=20)),
        (Recurrence(cadence=Every(30 * MINUTE), misfire=Misfire.SKIP), timedelta(minutes=20)),
        (Recurrence(cadence=ByHandler(2 * HOUR), misfire=Misfire.SKIP, start_at=None), 2 * HOUR),
    ],
    ids=str,
)
async def test_a_job_that_skips_waits_for_its_next_slot(
    store: Store, clock: FakeClock, rule: Recurrence, wait: timedelta
) -> None:
    start = clock.now() + 30 * MINUTE
    job_id = await enqueue_one(store, a_job(recurrence=rule, run_at=start))
    clock.advance(hours=5, minutes=10)
    assert await slots_run(store, clock, job_id) == []
    job = await store.get(job_id)
    assert (job.state, job.wait_reason, job.attempt) == (JobState.SCHEDULED, WaitReason.RECURRENCE, 0)
    assert job.run_at == job.slot_at == clock.now() + wait


async def test_a_slot_that_is_a_minute_late_is_not_missed(store: Store, clock: FakeClock) -> None:
    job_id = await enqueue_one(store, a_job(recurrence=half_hourly(Misfire.SKIP)))
    clock.advance(minutes=31)
    assert len(await slots_run(store, clock, job_id)) == 1


async def test_of_missed_slots_the_one_that_is_hardly_late_still_runs(store: Store, clock: FakeClock) -> None:
    job_id = await enqueue_one(store, a_job(recurrence=half_hourly(Misfire.SKIP)))
    clock.advance(hours=4, seconds=20)
    assert await slots_run(store, clock, job_id) == [clock.now() - 20 * SECOND]


@pytest.mark.parametrize("rule", [hourly(Misfire.ALL, misfire_max=3), half_hourly(Misfire.ALL, misfire_max=3)], ids=str)
async def test_all_runs_the_newest_missed_slots_and_no_more_than_it_may(store: Store, clock: FakeClock, rule: Recurrence) -> None:
    job_id = await enqueue_one(store, a_job(recurrence=rule))
    step = HOUR if isinstance(rule.cadence, Cron) else 30 * MINUTE
    clock.advance(hours=5, minutes=10)
    latest = rule.first(clock.now() - step - 10 * MINUTE)
    served = await slots_run(store, clock, job_id)
    assert len(served) == 3
    assert served[1] - served[0] == served[2] - served[1] == step
    assert clock.now() - served[-1] < step
    assert latest <= served[-1]


@pytest.mark.parametrize("rule", [hourly(Misfire.ALL), half_hourly(Misfire.ALL)], ids=str)
async def test_all_runs_every_missed_slot_once(store: Store, clock: FakeClock, rule: Recurrence) -> None:
    first = rule.first(clock.now())
    job_id = await enqueue_one(store, a_job(recurrence=rule))
    step = HOUR if isinstance(rule.cadence, Cron) else 30 * MINUTE
    clock.advance(hours=3, minutes=10)
    served = await slots_run(store, clock, job_id)
    assert served == [first + place * step for place in range(len(served))]
    assert clock.now() - served[-1] < step


async def test_a_pending_job_that_waits_for_too_long_is_skipped_too(store: Store, clock: FakeClock) -> None:
    job_id = await enqueue_one(store, a_job(recurrence=hourly(Misfire.SKIP)))
    clock.advance(minutes=30)
    await due(store)
    assert (await store.get(job_id)).state is JobState.PENDING
    clock.advance(minutes=2)
    await due(store)
    assert (await store.get(job_id)).state is JobState.SCHEDULED
    assert await claim(store) == []


async def test_what_an_operator_asked_for_is_never_skipped(store: Store, clock: FakeClock) -> None:
    job_id = await enqueue_one(store, a_job(recurrence=hourly(Misfire.SKIP)))
    await store.run_now([job_id])
    clock.advance(hours=2)
    await due(store)
    assert (await claim_one(store)).id == job_id


async def test_a_retry_is_never_skipped(store: Store, clock: FakeClock) -> None:
    await enqueue_one(store, a_job(recurrence=hourly(Misfire.SKIP), max_attempts=3))
    clock.advance(minutes=30)
    await due(store)
    await end(store, clock, await claim_one(store), failure())
    clock.advance(hours=2)
    await due(store)
    assert (await claim_one(store)).attempt == 2


async def test_a_rerun_is_never_skipped(store: Store, clock: FakeClock) -> None:
    job_id = await enqueue_one(store, a_job(recurrence=hourly(Misfire.SKIP)))
    clock.advance(minutes=30)
    await due(store)
    held = await claim_one(store)
    await store.run_now([job_id])
    await end(store, clock, held)
    clock.advance(hours=2)
    await due(store)
    assert (await claim_one(store)).id == job_id


async def test_skipping_past_the_end_ends_the_job(store: Store, clock: FakeClock) -> None:
    rule = hourly(Misfire.SKIP, end_at=clock.now() + 2 * HOUR)
    job_id = await enqueue_one(store, a_job(recurrence=rule, unique_key="k"))
    clock.advance(hours=5)
    await due(store)
    job = await store.get(job_id)
    assert (job.state, job.done_reason, job.unique_slot) == (JobState.CANCELLED, "ended", None)


async def test_a_late_job_with_a_rule_nobody_can_read_runs_and_says_so(store: Store, clock: FakeClock) -> None:
    job_id = await enqueue_one(store, a_job(recurrence=hourly(Misfire.SKIP)))
    await execute(store, f"""update windlass_jobs set cadence = '{{"misfire":"skip"}}' where id = {job_id}""")
    clock.advance(hours=2)
    await due(store)
    await end(store, clock, await claim_one(store))
    assert (await store.get(job_id)).state is JobState.FAILED
    (await store.delete([job_id])).one()


async def test_racing_promoters_move_a_missed_job_once(stores: list[Store], clock: FakeClock) -> None:
    ids = [await enqueue_one(stores[0], a_job(recurrence=half_hourly(Misfire.ALL, misfire_max=2))) for _ in range(20)]
    clock.advance(hours=5, minutes=10)
    counts = await asyncio.gather(*(store.promote() for store in stores))
    assert sum(count.jobs for count in counts) == 20
    assert {(await stores[0].get(job_id)).slot_at for job_id in ids} == {clock.now() - 40 * MINUTE}


async def test_jitter_delays_the_run_and_never_the_slot(store: Store, clock: FakeClock) -> None:
    rule = half_hourly(jitter=5 * MINUTE)
    start = clock.now()
    job_id = await enqueue_one(store, a_job(recurrence=rule))
    waits = set()
    for place in range(1, 5):
        job = await store.get(job_id)
        assert job.slot_at == start + place * 30 * MINUTE
        waits.add(job.run_at - job.slot_at)
        clock.advance(seconds=(job.run_at - clock.now()).total_seconds())
        await due(store)
        await end(store, clock, await claim_one(store))
    assert len(waits) == 4
    assert all(timedelta() <= wait <= 5 * MINUTE for wait in waits)


async def test_a_resumed_job_has_jitter_too(store: Store, clock: FakeClock) -> None:
    job_id = await enqueue_one(store, a_job(recurrence=half_hourly(jitter=5 * MINUTE)))
    await store.pause([job_id])
    clock.advance(minutes=3)
    job = (await store.resume([job_id])).one()
    assert job.slot_at == clock.now() + 30 * MINUTE
    assert job.slot_at < job.run_at <= job.slot_at + 5 * MINUTE


def a_template(rule: Recurrence, **options: Any) -> NewJob:
    return a_job("crawl", recurrence=rule, spawn=True, name="template", **options)


async def children(store: Store, passes: int = 50) -> list[Job]:
    """Let a template spawn for as long as it is due."""
    found = []
    for _ in range(passes):
        found += [await store.get(child.id) for child in await store.spawn()]
    return found


@pytest.mark.parametrize(("misfire", "expected"), [(Misfire.ONCE, 1), (Misfire.SKIP, 0), (Misfire.ALL, 5)], ids=str)
@pytest.mark.parametrize("cadence", [Cron("@hourly"), Every(HOUR)], ids=str)
async def test_a_template_serves_missed_slots_by_its_rule(
    store: Store, clock: FakeClock, cadence: Cron | Every, *, misfire: Misfire, expected: int
) -> None:
    rule = Recurrence(cadence=cadence, misfire=misfire)
    template = await enqueue_one(store, a_template(rule, run_at=clock.now() + 30 * MINUTE))
    clock.advance(hours=5, minutes=10)
    assert len(await children(store)) == expected
    left = await store.get(template)
    assert (left.run_at, left.completed_runs) == (clock.now() + 20 * MINUTE, expected)


async def test_a_template_catches_up_with_the_newest_slots(store: Store, clock: FakeClock) -> None:
    await enqueue_one(store, a_template(hourly(Misfire.ALL, misfire_max=2), run_at=clock.now() + 30 * MINUTE))
    clock.advance(hours=5, minutes=10)
    assert len(await children(store)) == 2


async def test_promote_says_that_a_template_has_slots_left(store: Store, clock: FakeClock) -> None:
    await enqueue_one(store, a_template(hourly(Misfire.ALL), run_at=clock.now() + 30 * MINUTE))
    clock.advance(hours=3)
    await store.spawn()
    assert await store.promote() == Promoted(0, None, has_templates=True, unleased_at=clock.now())


async def test_run_now_of_a_late_template_that_skips_spawns(store: Store, clock: FakeClock) -> None:
    template = await enqueue_one(store, a_template(hourly(Misfire.SKIP)))
    await store.pause([template])
    clock.advance(hours=5)
    await store.run_now([template])
    assert len(await children(store)) == 1


async def test_a_template_that_allows_overlap_has_a_job_for_each_slot(store: Store, clock: FakeClock) -> None:
    await enqueue_one(store, a_template(hourly(overlap=Overlap.ALLOW)))
    found = []
    for _ in range(3):
        clock.advance(hours=1)
        found += await children(store, 2)
    assert len({child.id for child in found}) == 3


async def test_a_template_that_skips_overlap_waits_for_its_job(store: Store, clock: FakeClock) -> None:
    template = await enqueue_one(store, a_template(hourly(overlap=Overlap.SKIP)))
    clock.advance(hours=1)
    [first] = await children(store, 2)
    clock.advance(hours=1)
    assert await children(store, 2) == []
    left = await store.get(template)
    assert (left.state, left.completed_runs) == (JobState.SCHEDULED, 1)
    assert left.run_at > clock.now()
    held = await claim_one(store)
    clock.advance(hours=1)
    assert await children(store, 2) == []
    await store.cancel([first.id])
    clock.advance(hours=1)
    # Cancelled, but its worker has not stopped yet.
    assert await children(store, 2) == []
    await store.stop([(held.id, held.token, Run(held.claimed_at))])
    clock.advance(hours=1)
    assert len(await children(store, 2)) == 1


async def test_a_template_that_replaces_cancels_its_unfinished_jobs(store: Store, clock: FakeClock) -> None:
    await enqueue_one(store, a_template(hourly(overlap=Overlap.CANCEL_PREVIOUS)))
    clock.advance(hours=1)
    [waiting] = await children(store, 2)
    clock.advance(hours=1)
    [running] = await children(store, 2)
    assert (await store.get(waiting.id)).state is JobState.CANCELLED
    assert (await claim_one(store)).id == running.id
    clock.advance(hours=1)
    [newest] = await children(store, 2)
    assert (await store.get(running.id)).state is JobState.CANCELLED
    assert newest.state is JobState.PENDING


async def test_a_childs_own_key_still_decides(store: Store, clock: FakeClock) -> None:
    rival = await enqueue_one(store, a_job("crawl", unique_key="r/python"))
    await enqueue_one(store, a_template(hourly(overlap=Overlap.CANCEL_PREVIOUS), child_key="r/python"))
    clock.advance(hours=1)
    assert await store.spawn() == [(rival, True)]


@pytest.mark.parametrize("overlap", Overlap)
async def test_racing_spawners_serve_a_slot_once(stores: list[Store], clock: FakeClock, overlap: Overlap) -> None:
    await enqueue_one(stores[0], a_template(hourly(overlap=overlap)))
    for slot in range(3):
        clock.advance(hours=1)
        answers = await asyncio.gather(*(store.spawn() for store in stores[:4] * 2))
        assert sum(len(answer) for answer in answers) == (1 if overlap is not Overlap.SKIP or slot == 0 else 0)
    unfinished = await claim(stores[0])
    assert len(unfinished) == {Overlap.ALLOW: 3, Overlap.SKIP: 1, Overlap.CANCEL_PREVIOUS: 1}[overlap]


def test_overlap_is_for_templates() -> None:
    with pytest.raises(InvalidInput, match="overlap"):
        a_job(recurrence=hourly(overlap=Overlap.SKIP))
