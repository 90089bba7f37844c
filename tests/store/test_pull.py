"""Pull workers take jobs: one each, in the order they ask, chosen as the setting says, and as probes of breakers."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta
from random import Random

import pytest

from tests.store.builders import LEASE, a_job, a_lease, due, enqueue_one
from tests.store.rivals import rivals
from tests.store.test_breakers import CLOSED, HALF_OPEN, OPEN, gate, trip_until_due
from tests.store.test_report import a_report
from windlass.core.job import Claimed, JobState, NewJob, WaitReason
from windlass.core.outcome import Failure, Raised
from windlass.core.pull import Candidate, PickOrder, Pull, lease_length, pick
from windlass.core.reported_outcome import ReportedOutcome
from windlass.core.topic import Topic
from windlass.errors import InvalidInput
from windlass.store import Store
from windlass.store.calls import report as reports
from windlass.testing import FakeClock

START = datetime.fromisoformat("2026-01-15T10:30:00+00:00")


def a_pull(worker: str = "w1", *, lane: str = "pull", task: str | None = None, pull_id: str | None = None) -> Pull:
    return Pull((lane,), a_lease(worker), () if task is None else (task,), pull_id)


async def pull_one(store: Store, pull: Pull | None = None, order: PickOrder = PickOrder.FIFO) -> Claimed | None:
    [job] = await store.pull_each([pull or a_pull()], order)
    return job


async def fill(store: Store, clock: FakeClock, *jobs: NewJob) -> list[int]:
    """Enqueue jobs a second apart."""
    made = []
    for job in jobs:
        made.append(await enqueue_one(store, job))
        clock.advance(seconds=1)
    return made


def job(task: str = "leads", **options: object) -> NewJob:
    return a_job(task, lane="pull", **options)


@pytest.mark.parametrize(("asked", "given"), [(None, 180), (0, 30), (29, 30), (300, 300), (601, 600)])
def test_the_lease_is_brought_within_its_bounds(asked: int | None, given: int) -> None:
    wish = None if asked is None else timedelta(seconds=asked)
    assert lease_length(wish, timedelta(seconds=180)) == timedelta(seconds=given)


async def test_each_worker_gets_one_job_in_the_order_they_ask(store: Store, clock: FakeClock) -> None:
    ids = await fill(store, clock, job(), job(), job("maps", priority=5))
    taken = await store.pull_each([a_pull(f"w{place}") for place in range(4)])
    assert [one and (one.id, one.worker) for one in taken] == [(ids[2], "w0"), (ids[0], "w1"), (ids[1], "w2"), None]
    assert await store.pull_each([]) == []
    assert {(await store.get(number)).started_at for number in ids} == {clock.now()}


async def test_a_pull_looks_only_at_its_lane_and_task(store: Store, clock: FakeClock) -> None:
    [first, second] = await fill(store, clock, job("leads"), job("maps"))
    wishes = [a_pull(lane="other"), a_pull(task="maps"), a_pull(task="maps"), a_pull()]
    assert [one and one.id for one in await store.pull_each(wishes)] == [None, second, None, first]


async def test_the_same_pull_id_gives_the_same_lease(store: Store, clock: FakeClock) -> None:
    await fill(store, clock, job(), job())
    first = await pull_one(store, a_pull(pull_id="p"))
    clock.advance(seconds=5)
    again = await pull_one(store, a_pull(pull_id="p"))
    other = await pull_one(store, a_pull("w2", pull_id="p"))
    assert first is not None
    assert again is not None
    assert other is not None
    assert (again.id, again.token, again.attempt) == (first.id, first.token, 1)
    assert again.lease_expires_at == clock.now() + LEASE
    assert other.id != first.id


async def test_a_pull_id_gives_no_job_of_a_lane_that_is_not_asked_for(store: Store, clock: FakeClock) -> None:
    [held] = await fill(store, clock, job())
    await fill(store, clock, a_job(lane="other"))
    theirs = await pull_one(store, a_pull(pull_id="p"))
    assert theirs is not None
    asked = [a_pull(lane="other", pull_id="p"), a_pull("w2", lane="other", pull_id="p")]
    taken = await store.pull_each(asked)
    assert [one and one.lane for one in taken] == [None, "other"]
    await store.cancel([held])
    assert await pull_one(store, a_pull(lane="other", pull_id="p")) is None
    assert (await store.heartbeat(held, theirs.token)).should_stop


async def test_a_paused_lane_gives_nothing_and_says_so(store: Store, clock: FakeClock) -> None:
    await fill(store, clock, job())
    await store.lanes.pause("pull")
    assert (await store.lanes.get("pull")).is_paused
    assert await pull_one(store) is None
    await store.lanes.resume("pull")
    assert not (await store.lanes.get("pull")).is_paused
    assert not (await store.lanes.get("never heard of")).is_paused
    assert await pull_one(store) is not None


async def test_rivals_never_get_the_same_job(store: Store) -> None:
    await store.enqueue([job() for _ in range(60)])
    for order in PickOrder:
        async with rivals(store) as stores:
            wishes = [[a_pull(f"w{place}-{turn}") for turn in range(4)] for place in range(4)]
            pulls = [one.pull_each(each, order) for one, each in zip(stores, wishes, strict=True)]
            taken = await asyncio.gather(*pulls)
        ids = [one.id for each in taken for one in each if one is not None]
        assert len(ids) == len(set(ids))
    assert sum(count.jobs for count in await store.count_jobs() if count.state is JobState.RUNNING) >= 55


async def test_a_job_that_was_taken_for_nobody_goes_back_uncharged(store: Store, clock: FakeClock) -> None:
    [number] = await fill(store, clock, job())
    taken = await pull_one(store)
    assert taken is not None
    assert await store.give_back(taken)
    left = await store.get(number)
    assert (left.state, left.wait_reason, left.attempt, left.executions) == (JobState.SCHEDULED, WaitReason.RELEASED, 0, 0)
    assert await store.list_executions(number) == []
    assert not await store.give_back(taken)
    await due(store)
    again = await pull_one(store)
    assert again is not None
    assert not await store.give_back(taken)


async def ids_by(store: Store, order: PickOrder, count: int) -> list[int]:
    taken = [await pull_one(store, None, order) for _ in range(count)]
    return [one.id for one in taken if one is not None]


async def test_fifo_takes_the_oldest_and_newest_the_newest_among_equal_priorities(store: Store, clock: FakeClock) -> None:
    low, mid, high, late = await fill(store, clock, job(), job("maps"), job("maps", priority=3), job())
    assert await ids_by(store, PickOrder.NEWEST, 3) == [high, late, mid]
    assert await ids_by(store, PickOrder.FIFO, 2) == [low]


async def test_another_lane_is_fifo_whatever_the_setting(store: Store, clock: FakeClock) -> None:
    ids = await fill(store, clock, *(a_job("leads", lane="other") for _ in range(3)))
    taken = [await pull_one(store, a_pull(lane="other"), PickOrder.NEWEST) for _ in range(3)]
    assert [one and one.id for one in taken] == ids


async def test_random_takes_any_of_the_highest_priority_by_the_given_chance(store: Store, clock: FakeClock) -> None:
    ids = await fill(store, clock, *(job("leads" if place % 2 else "maps", priority=7) for place in range(20)), job())
    taken = await ids_by(store, PickOrder.RANDOM, 21)
    assert sorted(taken) == ids
    assert taken[-1] == ids[-1]
    assert taken != ids


async def test_random_is_chosen_among_the_first_hundred(store: Store) -> None:
    enqueued = await store.enqueue([job() for _ in range(150)])
    first = {one.id for one in enqueued[:100]}
    assert {(await ids_by(store, PickOrder.RANDOM, 1))[0] in first for _ in range(3)} >= {True}
    assert (await ids_by(store, PickOrder.RANDOM, 1))[0] <= enqueued[103].id


async def finish_one(store: Store, clock: FakeClock, order: PickOrder) -> str:
    """Pull a job, finish it, and say whose it was."""
    taken = await pull_one(store, None, order)
    assert taken is not None
    clock.advance(seconds=1)
    await store.report(a_report(taken, is_done=True))
    return taken.correlation_id or taken.subject or "-"


async def test_fair_serves_the_group_that_was_finished_least_recently(store: Store, clock: FakeClock) -> None:
    busy = [job(correlation_id="busy") for _ in range(4)]
    await fill(store, clock, *busy, job(subject="shop"), job(subject="shop"), job(), job())
    served = [await finish_one(store, clock, PickOrder.FAIR) for _ in range(8)]
    assert served == ["busy", "shop", "-", "busy", "shop", "-", "busy", "busy"]


async def test_a_failed_run_is_a_turn_too(store: Store, clock: FakeClock) -> None:
    await fill(store, clock, job(correlation_id="a"), job(correlation_id="a"), job(correlation_id="b"))
    taken = await pull_one(store, None, PickOrder.FAIR)
    assert taken is not None
    await store.report(a_report(taken, error="no"))
    assert await finish_one(store, clock, PickOrder.FAIR) == "b"


def candidates(*groups: str) -> Sequence[Candidate]:
    return [Candidate(place, START, group) for place, group in enumerate(groups)]


def test_the_pick_is_pure() -> None:
    found = candidates("a", "b", "a", "c")
    turns = {"a": START, "b": START + timedelta(seconds=1)}
    assert pick(PickOrder.FAIR, found, turns, Random(1)) == [3, 0, 2, 1]
    assert pick(PickOrder.NEWEST, found, {}, Random(1)) == [0, 1, 2, 3]
    assert pick(PickOrder.RANDOM, found, {}, Random(3)) == pick(PickOrder.RANDOM, found, {}, Random(3))
    assert pick(PickOrder.RANDOM, [], {}, Random(3)) == []


async def test_an_old_look_at_the_queue_is_looked_at_again(store: Store, clock: FakeClock) -> None:
    empty = await store.slices()
    [first] = await fill(store, clock, job())
    await store.lanes.pause("other")
    [taken] = await store.pull_each([a_pull()], found=empty)
    assert taken is not None
    assert taken.id == first


async def test_a_paused_gate_between_look_and_claim_takes_nothing_picked(store: Store, clock: FakeClock) -> None:
    await fill(store, clock, job())
    await store.tasks.pause("leads")
    for order in PickOrder:
        assert await pull_one(store, None, order) is None


@pytest.mark.parametrize(
    "wrong",
    [a_pull(lane=""), a_pull(""), a_pull(task="x" * 300), a_pull(pull_id="\0")],
    ids=["lane", "worker", "task", "pull_id"],
)
async def test_a_bad_wish_is_refused_and_takes_nothing(store: Store, clock: FakeClock, wrong: Pull) -> None:
    [number] = await fill(store, clock, job())
    with pytest.raises(InvalidInput):
        await store.pull_each([a_pull(), wrong])
    with pytest.raises(InvalidInput):
        await store.pull_each([a_pull()] * 33)
    assert (await store.get(number)).state is JobState.PENDING


async def test_a_due_breaker_is_tried_with_one_pull_before_other_work(store: Store, clock: FakeClock) -> None:
    await gate(store, "mailer")
    await fill(store, clock, job("leads"), job("mailer"), job("mailer"))
    await trip_until_due(store, clock)
    wishes = [a_pull(f"w{place}") for place in range(3)]
    taken = await store.pull_each(wishes)
    # What comes after a probe is another transaction's: this one holds the gates.
    taken += await store.pull_each(wishes[len(taken) :])
    assert [one and one.task for one in taken] == ["mailer", "leads", None]
    breaker = await store.breakers.get("mail")
    assert breaker is not None
    assert (breaker.state, breaker.is_probe_alive) == (HALF_OPEN, True)


@pytest.mark.parametrize(("said", "left"), [({"is_done": True}, CLOSED), ({"error": "no"}, OPEN)])
async def test_the_report_of_a_probe_closes_or_opens_its_breaker(
    store: Store, clock: FakeClock, said: dict[str, object], left: object
) -> None:
    await gate(store, "mailer")
    await fill(store, clock, job("mailer"), job("mailer"))
    await trip_until_due(store, clock)
    probe = await pull_one(store)
    assert probe is not None
    await store.report(a_report(probe))
    assert (await store.breakers.get("mail")).state is HALF_OPEN  # type: ignore[union-attr]  # it is there
    await store.report(a_report(probe, **said))
    assert (await store.breakers.get("mail")).state is left  # type: ignore[union-attr]  # it is there
    assert (await pull_one(store) is not None) is (left is CLOSED)


async def test_a_probe_that_fails_by_its_own_fault_says_nothing_of_the_service(store: Store, clock: FakeClock) -> None:
    await gate(store, "mailer")
    await fill(store, clock, job("mailer"), job("mailer"))
    await trip_until_due(store, clock)
    probe = await pull_one(store)
    assert probe is not None
    await store.report(a_report(probe, reported=ReportedOutcome(Raised(Failure("no such address"), is_final=True))))
    assert (await store.breakers.get("mail")).state is HALF_OPEN  # type: ignore[union-attr]  # it is there
    assert (await pull_one(store)) is not None


async def test_a_breaker_that_a_report_closes_wakes_those_who_wait(store: Store, clock: FakeClock) -> None:
    await gate(store, "mailer")
    await fill(store, clock, job("mailer"), job("mailer"))
    await trip_until_due(store, clock)
    probe = await pull_one(store)
    assert probe is not None
    call = reports.report(a_report(probe, is_done=True))
    assert Topic.WORK in call.wakes(await store.run(call))


async def test_a_probe_whose_worker_is_lost_lets_another_try(store: Store, clock: FakeClock) -> None:
    await gate(store, "mailer")
    [first, second] = await fill(store, clock, job("mailer"), job("mailer"))
    await trip_until_due(store, clock)
    probe = await pull_one(store)
    assert probe is not None
    assert probe.id == first
    assert await pull_one(store) is None
    clock.advance(seconds=31)
    await store.reclaim()
    again = await pull_one(store)
    assert again is not None
    assert again.id == second


async def test_a_signature_is_taken_once_by_all_until_its_time_is_over(store: Store, clock: FakeClock) -> None:
    async with rivals(store) as stores:
        taken = await asyncio.gather(*(one.signatures.record("abc", timedelta(minutes=15)) for one in stores * 5))
    assert taken.count(True) == 1
    assert await store.signatures.record("other", timedelta(minutes=15))
    assert await store.signatures.prune() == 0
    clock.advance(minutes=15)
    assert await store.signatures.prune(limit=1) == 1
    assert await store.signatures.prune() == 1
    assert await store.signatures.record("abc", timedelta(minutes=15))


async def test_pull_workers_are_listed_as_seen_with_what_they_hold(store: Store, clock: FakeClock) -> None:
    await fill(store, clock, job())
    held = await pull_one(store, a_pull("w1"))
    assert held is not None
    began = clock.now()
    assert await store.workers.pulled({"w2": "10.0.0.2", "w1": "10.0.0.1"}) == 2
    clock.advance(seconds=50)
    assert await store.workers.pulled({"w1": "10.0.0.9"}) == 1
    clock.advance(seconds=20)
    first, second = await store.workers.list()
    assert (first.id, first.kind, first.host, first.is_online, first.running, first.started_at) == (
        *("w1", "pull", "10.0.0.9", True, 1, began),
    )
    assert [one.id for one in first.jobs] == [held.id]
    assert (second.id, second.is_online, second.running) == ("w2", False, 0)
    assert await store.workers.pulled({}) == 0
