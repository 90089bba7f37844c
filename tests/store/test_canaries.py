"""Requeues that try a few letters first: the rest follows only when those succeed."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.store.builders import a_job, claim, claim_one, end, enqueue_one, failure
from tests.store.test_letter_desk import die
from tests.store.test_letters import forget_job, mourned
from windlass.core.audit import Actor
from windlass.core.canary import Canary, CanaryState
from windlass.core.job import Edit, JobState, UniqueScope
from windlass.core.letters import LetterFilter
from windlass.core.outcome import Outcome
from windlass.errors import CanaryEnded, CanaryNotFound, CanaryRunning, InvalidInput, LetterGroupNotFound
from windlass.store import Store
from windlass.testing import FakeClock

EVERY = LetterFilter()


async def bury_many(store: Store, count: int, **options: Any) -> list[int]:
    made = await store.enqueue([a_job(max_attempts=1, **options) for _ in range(count)])
    await store.bury([one.id for one in made], "mailbox full")
    return [one.id for one in made]


async def run_all(store: Store, clock: FakeClock, outcome: Outcome | None = None) -> list[int]:
    """Run what is claimable; returns the jobs."""
    held = await claim(store, 500)
    for job in held:
        await end(store, clock, job, outcome)
    return [job.id for job in held]


async def advance(store: Store) -> Canary | None:
    [canary] = await store.canaries.list(is_active=True)
    return await store.canaries.advance(canary.id)


async def test_the_rest_follows_when_the_first_succeed(store: Store, clock: FakeClock) -> None:
    jobs = await bury_many(store, 12)
    started = await store.canaries.start(EVERY, size=3, by="ann")
    assert (started.state, started.size, started.requeued, started.created_by) == ("trying", 3, 3, "ann")
    assert [one.job_id for one in started.runs] == jobs[:3]
    assert await advance(store) is None
    later = await bury_many(store, 1)
    assert await run_all(store, clock) == jobs[:3]
    judged = await advance(store)
    assert judged is not None
    assert (judged.state, judged.succeeded, judged.requeued) == ("requeuing", 3, 3)
    assert [(await store.canaries.advance(started.id, 5)) for _ in range(2)][-1].requeued == 12  # type: ignore[union-attr]  # it moved
    done = await advance(store)
    assert done is not None
    assert (done.state, done.requeued, done.refused, done.ended_at) == (CanaryState.DONE, 12, 0, clock.now())
    assert await store.canaries.advance(started.id) is None
    assert await run_all(store, clock) == jobs[3:]
    # What died after the start was not meant.
    assert (await store.get(later[0])).state is JobState.FAILED


async def test_a_hundred_letters_whose_cause_is_not_fixed_run_only_the_canaries(store: Store, clock: FakeClock) -> None:
    jobs = await bury_many(store, 100)
    started = await store.canaries.start(EVERY, size=5, by="ann")
    ran = await run_all(store, clock, failure("mailbox full"))
    stopped = await store.canaries.advance(started.id)
    assert stopped is not None
    assert (stopped.state, stopped.reason) == (
        CanaryState.STOPPED,
        f"job {jobs[0]} of dead letter 1 failed again: mailbox full",
    )
    for _ in range(3):
        assert await store.canaries.advance(started.id) is None
    assert (ran, await run_all(store, clock)) == (jobs[:5], [])
    assert (await store.letters.count_open()).letters == 100


async def test_one_failed_run_stops_it_though_its_job_would_be_tried_again(store: Store, clock: FakeClock) -> None:
    [job] = await bury_many(store, 1)
    await store.edit(job, Edit(max_attempts=5))
    await bury_many(store, 4)
    started = await store.canaries.start(EVERY, size=1, by="ann")
    await run_all(store, clock, failure("still broken"))
    assert (await store.get(job)).state is JobState.SCHEDULED
    stopped = await store.canaries.advance(started.id)
    assert stopped is not None
    assert (stopped.state, "still broken" in (stopped.reason or "")) == (CanaryState.STOPPED, True)


async def test_a_worker_that_was_lost_says_nothing_about_the_cause(store: Store, clock: FakeClock) -> None:
    await bury_many(store, 1)
    [job] = [(await store.letters.get(1)).job_id]
    await store.edit(job, Edit(max_attempts=5))
    started = await store.canaries.start(EVERY, size=1, by="ann")
    [lost] = await claim(store)
    clock.advance(hours=1)
    assert await store.reclaim() == [lost.id]
    assert await store.canaries.advance(started.id) is None
    await store.promote()
    await end(store, clock, await claim_one(store))
    moved = await store.canaries.advance(started.id)
    assert moved is not None
    assert moved.state is CanaryState.REQUEUING


async def test_a_canary_that_was_cancelled_or_is_gone_stops_it(store: Store, clock: FakeClock) -> None:
    for what in ("was cancelled", "is gone"):
        [job, *_] = await bury_many(store, 3, lane=what)
        [letter] = await store.list_dead_letters(job)
        started = await store.canaries.start(LetterFilter(fingerprint=letter.fingerprint), size=1, by="ann")
        if what == "is gone":
            await forget_job(store, started.runs[0].job_id)
        else:
            await store.cancel([started.runs[0].job_id])
        stopped = await store.canaries.advance(started.id)
        assert stopped is not None
        assert (stopped.state, what in (stopped.reason or "")) == (CanaryState.STOPPED, True)
    del clock


async def test_a_schedule_is_judged_by_its_next_run(store: Store, clock: FakeClock) -> None:
    held = await mourned(store, clock)
    started = await store.canaries.start(EVERY, size=1, by="ann")
    assert await store.canaries.advance(started.id) is None
    assert await run_all(store, clock) == [held.id]
    moved = await store.canaries.advance(started.id)
    assert moved is not None
    assert moved.state is CanaryState.REQUEUING


async def test_only_letters_of_the_filter_are_meant(store: Store, clock: FakeClock) -> None:
    letters = [await die(store, clock, "boom" if place % 2 else "bang") for place in range(6)]
    mark = letters[1].fingerprint
    started = await store.canaries.start(LetterFilter(fingerprint=mark), size=1, by="ann")
    await run_all(store, clock)
    while await store.canaries.advance(started.id):
        pass
    done = await store.canaries.get(started.id)
    assert (done.state, done.requeued, done.fingerprint) == (CanaryState.DONE, 3, mark)
    assert (await store.letters.count_open()).letters == 3


async def test_five_processes_do_each_step_once(stores: list[Store], clock: FakeClock) -> None:
    store = stores[0]
    jobs = await bury_many(store, 40)
    started = await store.canaries.start(EVERY, size=2, by="ann")
    await run_all(store, clock)
    for _ in range(12):
        await asyncio.gather(*(one.canaries.advance(started.id, 7) for one in stores))
    done = await store.canaries.get(started.id)
    assert (done.state, done.requeued) == (CanaryState.DONE, 40)
    assert await run_all(store, clock) == jobs[2:]
    runs = [len(await store.list_executions(job)) for job in jobs]
    assert runs == [1] * 40


async def test_of_two_that_start_at_once_one_is_refused(stores: list[Store], clock: FakeClock) -> None:
    await bury_many(stores[0], 10)
    answers = await asyncio.gather(*(one.canaries.start(EVERY, size=2, by="ann") for one in stores), return_exceptions=True)
    [started] = [one for one in answers if isinstance(one, Canary)]
    others = [one for one in answers if not isinstance(one, Canary)]
    assert {type(one) for one in others} == {CanaryRunning}
    assert f"canary {started.id} is under way" in str(others[0])
    assert len(await run_all(stores[0], clock)) == 2


async def test_a_canary_is_called_off_and_what_was_not_brought_back_stays(store: Store, clock: FakeClock) -> None:
    await bury_many(store, 6)
    started = await store.canaries.start(EVERY, size=2, by="ann")
    ended = await store.acting(Actor("bob")).canaries.cancel(started.id)
    assert (ended.state, ended.ended_at) == (CanaryState.CANCELLED, clock.now())
    assert len(await run_all(store, clock)) == 2
    assert await store.canaries.advance(started.id) is None
    with pytest.raises(CanaryEnded, match=f"cannot cancel canary {started.id}: it is cancelled"):
        await store.canaries.cancel(started.id)
    assert (await store.audit.list())[0].principal == "bob"
    again = await store.canaries.start(EVERY, size=2, by="ann")
    assert [one.id for one in await store.canaries.list()] == [again.id, started.id]
    assert [one.id for one in await store.canaries.list(is_active=True)] == [again.id]
    assert [one.id for one in await store.canaries.list(is_active=False)] == [started.id]


async def test_bad_starts_are_refused_and_change_nothing(store: Store, clock: FakeClock) -> None:
    for size in (0, 101, True):
        with pytest.raises(InvalidInput, match=r"^size: must be a whole number between 1 and 100"):
            await store.canaries.start(EVERY, size=size, by="ann")
    with pytest.raises(LetterGroupNotFound, match="'nope'"):
        await store.canaries.start(LetterFilter(fingerprint="nope"), size=1, by="ann")
    with pytest.raises(InvalidInput, match=r"^task: matches no open dead letter"):
        await store.canaries.start(LetterFilter(task="mail"), size=1, by="ann")
    with pytest.raises(InvalidInput, match=r"^ids: "):
        await store.canaries.start(LetterFilter(ids=(1,)), size=1, by="ann")
    with pytest.raises(InvalidInput, match=r"^by: "):
        await store.canaries.start(EVERY, size=1, by="")
    for number in (7, 0, 2**70):
        with pytest.raises(CanaryNotFound):
            await store.canaries.get(number)
        with pytest.raises(CanaryNotFound):
            await store.canaries.cancel(number)
    [job] = await bury_many(store, 1, unique_key="k", unique_scope=UniqueScope.ACTIVE)
    holder = await enqueue_one(store, a_job(unique_key="k", unique_scope=UniqueScope.ACTIVE))
    with pytest.raises(InvalidInput, match=r"the jobs of dead letters \[1\] cannot come back"):
        await store.canaries.start(EVERY, size=1, by="ann")
    assert await store.canaries.list() == []
    assert (await store.get(job)).state is JobState.FAILED
    del holder, clock


async def test_what_upkeep_brings_back_is_audited_in_the_name_of_who_started_it(store: Store, clock: FakeClock) -> None:
    await bury_many(store, 3)
    started = await store.acting(Actor("ann")).canaries.start(EVERY, size=1, by="ann")
    await run_all(store, clock)
    while await store.canaries.advance(started.id):
        pass
    lines = [(one.principal, one.action) for one in await store.audit.list() if one.target == f"canary:{started.id}"]
    assert lines == [("ann", "canary done"), ("ann", "requeue"), ("ann", "start canary")]
