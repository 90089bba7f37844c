"""Moves by filter: exact counts, batch by batch."""

from __future__ import annotations

import asyncio
import os
import time
from datetime import timedelta
from typing import Any, TypeVar

import pytest

from tests.store.builders import a_job, all_jobs, claim, end, enqueue_one, fail_for_good, recurring, running
from tests.support.raw import execute
from windlass.core.audit import Actor
from windlass.core.filter import JobFilter, StateFilter
from windlass.core.ids import job_uuid
from windlass.core.job import JobState, WaitReason
from windlass.core.job_verbs import Bulk
from windlass.errors import InvalidInput
from windlass.store import Store
from windlass.store.calls import bulk
from windlass.store.calls.call import Call
from windlass.testing import FakeClock

T = TypeVar("T")
JOBS = 100_000 if os.environ.get("WINDLASS_TEST_LONG") == "1" else 4_000
MOST_SECONDS = 1.0


async def matched(store: Store, wanted: JobFilter) -> list[int]:
    page = await store.run(bulk.page_ids(wanted, 0, 10**9))
    return page.ids


async def test_a_filter_finds_what_it_says(store: Store, clock: FakeClock) -> None:
    old = await enqueue_one(store, a_job("old", lane="slow", subject="s", correlation_id="c"))
    clock.advance(hours=1)
    child = await enqueue_one(store, a_job("child", parent_id=old, payload='{"Name":"Ann Lee"}'))
    waiting = await enqueue_one(store, a_job("wait", delay=timedelta(hours=1), unique_key="Key-9"))
    rule = await enqueue_one(store, a_job("rule", recurrence=recurring(), name="Nightly"))
    template = await enqueue_one(store, a_job("template", recurrence=recurring(), spawn=True))
    held = await running(store, a_job("lost", priority=9))
    await store.take_lease([held.id])
    everything = [old, child, waiting, rule, template, held.id]
    state = StateFilter
    found = {
        JobFilter(): everything,
        JobFilter(states=(state(JobState.PENDING),)): [old, child],
        JobFilter(states=(state(JobState.SCHEDULED, frozenset({WaitReason.LOST, WaitReason.RETRY})),)): [held.id],
        JobFilter(states=(state(JobState.PENDING), state(JobState.SCHEDULED, frozenset({WaitReason.DELAY})))): [
            old,
            child,
            waiting,
        ],
        JobFilter(states=(state(JobState.SCHEDULED, frozenset()),)): [],
        JobFilter(tasks=("old", "rule")): [old, rule],
        JobFilter(lanes=("slow",)): [old],
        JobFilter(tasks=("child",), lanes=("slow",)): [],
        JobFilter(subject="s"): [old],
        JobFilter(correlation_id="c"): [old],
        JobFilter(parent_id=old): [child],
        JobFilter(search="ann lEE"): [child],
        JobFilter(search="key-9"): [waiting],
        JobFilter(search="NIGHT"): [rule],
        JobFilter(search="stopped renewing"): [held.id],
        JobFilter(search="%"): [],
        JobFilter(priority=9): [held.id],
        JobFilter(error="STOPPED renewing"): [held.id],
        JobFilter(error="ann lEE"): [],
        JobFilter(worker="worker-1"): [],
        JobFilter(since=clock.now()): everything[1:],
        JobFilter(is_template=True): [template],
        JobFilter(is_template=False): [one for one in everything if one != template],
        JobFilter(is_recurring=True): [rule, template],
        JobFilter(is_recurring=False): [old, child, waiting, held.id],
    }
    for wanted, ids in found.items():
        assert await matched(store, wanted) == ids, wanted
        assert await store.bulk("boost", wanted, {"amount": 1}, dry_run=True) == Bulk(len(ids))


async def test_a_bulk_changes_what_it_may_and_counts_the_rest(store: Store, clock: FakeClock) -> None:
    await store.enqueue([a_job() for _ in range(7)])
    for held in await claim(store, 3):
        await end(store, clock, held)
    await enqueue_one(store, a_job("other"))
    done = await store.bulk("cancel", JobFilter(tasks=("work",)), {"reason": "why"}, batch=2)
    assert done == Bulk(7, 4, 3)
    states = [job.state for job in await all_jobs(store)]
    assert (states.count(JobState.CANCELLED), states.count(JobState.PENDING)) == (4, 1)


async def test_a_dry_run_changes_nothing(store: Store) -> None:
    await store.enqueue([a_job() for _ in range(5)])
    before = await all_jobs(store)
    assert await store.bulk("delete", JobFilter(), dry_run=True, batch=2) == Bulk(5)
    assert await all_jobs(store) == before


OPTIONS: dict[str, dict[str, Any]] = {
    "boost": {"amount": 5},
    "set_priority": {"priority": 5},
    "bury": {"error": "no"},
    "fail": {"error": "no", "will_retry": False},
    "override_status": {"status": JobState.COMPLETED, "by": "ann", "lease_length": timedelta(minutes=15)},
}


@pytest.mark.parametrize("verb", bulk.VERBS)
async def test_every_verb_goes_in_bulk_as_it_does_by_number(store: Store, clock: FakeClock, verb: str) -> None:
    await fail_for_good(store, clock)
    await running(store)
    await running(store, a_job(recurrence=recurring(), run_at=clock.now()))
    await enqueue_one(store)
    paused = await enqueue_one(store, a_job(delay=timedelta(hours=1)))
    await store.pause([paused])
    await enqueue_one(store, a_job(delay=timedelta(hours=1)))
    expected = {
        "cancel": 5, "stop_run": 1, "pause": 1, "resume": 1, "disable": 4, "enable": 5, "run_now": 5, "retry": 1, "boost": 6,
        "set_priority": 6, "delete": 4, "override_status": 6, "clone": 1, "bury": 2, "fail": 4, "take_lease": 2,
    }  # fmt: skip
    done = await store.bulk(verb, JobFilter(), OPTIONS.get(verb))
    assert done == Bulk(6, expected[verb], 6 - expected[verb])


async def test_bad_verbs_options_and_batches_are_refused_before_anything_happens(store: Store) -> None:
    job_id = await enqueue_one(store)
    for verb, options, field in (
        ("explode", {}, "verb"),
        ("boost", {}, "options"),
        ("cancel", {"amount": 1}, "options"),
        ("boost", {"amount": 0}, "amount"),
    ):
        with pytest.raises(InvalidInput, match=f"^{field}: "):
            await store.bulk(verb, JobFilter(), options, dry_run=True)
    for batch in (0, 501):
        with pytest.raises(InvalidInput, match=r"^batch: "):
            await store.bulk("cancel", JobFilter(), batch=batch)
    assert (await store.get(job_id)).state is JobState.PENDING


async def test_a_taken_key_is_refused_and_stops_nobody(store: Store, clock: FakeClock) -> None:
    await fail_for_good(store, clock, a_job(unique_key="k", max_attempts=1))
    await fail_for_good(store, clock)
    await enqueue_one(store, a_job(unique_key="k"))
    failed = JobFilter(states=(StateFilter(JobState.FAILED),))
    for batch in (1, 500):
        assert (await store.bulk("retry", failed, batch=batch)).refused == 1
    assert (await store.bulk("clone", failed)) == Bulk(1, 0, 1)


async def test_a_bulk_ends_although_it_makes_what_it_looks_for(store: Store, clock: FakeClock) -> None:
    for _ in range(3):
        await end(store, clock, await running(store))
    assert await store.bulk("clone", JobFilter(), batch=1) == Bulk(3, 3, 0)
    assert len(await all_jobs(store)) == 6


async def test_a_job_that_no_longer_matches_when_its_turn_comes_is_left_alone(store: Store) -> None:
    ids = [await enqueue_one(store) for _ in range(3)]
    pending = JobFilter(states=(StateFilter(JobState.PENDING),))
    [held] = await claim(store, 1)
    make = bulk.maker("cancel", {})
    done = (await store.run(bulk.batch(make, pending, ids))).bulk
    assert done == Bulk(2, 2, 0)
    assert (await store.get(held.id)).state is JobState.RUNNING


async def test_windows_without_a_match_are_stepped_over(store: Store, monkeypatch: Any) -> None:
    monkeypatch.setattr(bulk.page_ids, "__defaults__", (3,))
    for place in range(10):
        await enqueue_one(store, a_job("rare" if place in {0, 8} else "work"))
    await store.delete([4, 5, 6, 7])
    assert await store.bulk("cancel", JobFilter(tasks=("rare",))) == Bulk(2, 2, 0)


async def test_every_batch_is_audited(store: Store) -> None:
    await store.enqueue([a_job() for _ in range(3)])
    await store.acting(Actor("ann")).bulk("cancel", JobFilter(), batch=2)
    rows = await execute(store, "select principal, action, target, outcome from windlass_audit")
    assert rows == [("ann", "cancel", "jobs", "done")] * 2


async def test_two_bulks_at_once_move_each_job_once(store: Store) -> None:
    await store.enqueue([a_job() for _ in range(300)])
    pending = JobFilter(states=(StateFilter(JobState.PENDING),))
    done = await asyncio.gather(*(store.bulk("bury", pending, {"error": "no"}, batch=20) for _ in range(3)))
    assert sum(part.changed for part in done) == 300
    assert sum(part.refused for part in done) == 0


class Stopwatch:
    """Measures how long each call holds the database."""

    def __init__(self, store: Store) -> None:
        self._run = store.database.run
        self.longest = 0.0

    async def run(self, call: Call[T]) -> T:
        began = time.monotonic()
        answer = await self._run(call)
        self.longest = max(self.longest, time.monotonic() - began)
        return answer


async def test_no_batch_of_a_large_bulk_holds_a_lock_for_long(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    for start in range(0, JOBS, 1000):
        await store.enqueue([a_job(payload=f'{{"n":{start}}}', unique_key=f"k{start + n}") for n in range(1000)])
    watch = Stopwatch(store)
    monkeypatch.setattr(store.database, "run", watch.run)
    longest = {}
    for verb, options in (
        ("boost", {"amount": 5}),
        ("bury", {"error": "no"}),
        ("retry", {}),
        ("override_status", OPTIONS["override_status"]),
        ("clone", {}),
        ("delete", {}),
    ):
        watch.longest = 0.0
        assert await store.bulk(verb, JobFilter(tasks=("work",)), options) == Bulk(
            JOBS * (1 + (verb == "delete")), JOBS * (1 + (verb == "delete")), 0
        )
        longest[verb] = round(watch.longest, 3)
    print(f"{store.database.dialect}, {JOBS} jobs, longest transaction: {longest}")
    assert max(longest.values()) < MOST_SECONDS, longest


async def test_a_bulk_by_numbers_changes_those_that_match(store: Store) -> None:
    ids = [await enqueue_one(store, a_job(f"t{n % 2}")) for n in range(6)]
    wanted, everything = JobFilter(tasks=("t1",)), JobFilter()
    asked = [ids[3], ids[0], ids[1], ids[1], 99_999, -5, 2**70]
    assert await store.bulk("cancel", wanted, ids=asked, dry_run=True) == Bulk(2)
    assert await store.bulk("cancel", wanted, ids=asked) == Bulk(2, 2, 0)
    assert await store.bulk("cancel", everything, ids=asked, batch=1) == Bulk(3, 1, 2)
    assert await store.bulk("cancel", everything, ids=[]) == Bulk()
    left = {job.id for job in await all_jobs(store) if job.state is JobState.PENDING}
    assert left == {ids[2], ids[4], ids[5]}


async def test_a_bulk_in_parts_goes_on_where_it_stopped_and_leaves_later_jobs_alone(store: Store) -> None:
    ids = [await enqueue_one(store, a_job(f"t{n % 2}")) for n in range(10)]
    wanted = JobFilter(tasks=("t1",))
    await store.cancel([ids[3]])
    first = await store.bulk_part("cancel", wanted, limit=3)
    assert (first.done, first.changed, first.next, first.until) == (Bulk(3, 2, 1), (ids[1], ids[5]), ids[5], ids[-1])
    late = await enqueue_one(store, a_job("t1"))
    second = await store.bulk_part("cancel", wanted, after=ids[5], until=first.until, limit=3)
    assert (second.done, second.changed, second.next) == (Bulk(2, 2, 0), (ids[7], ids[9]), None)
    assert (await store.get(late)).state is JobState.PENDING
    chosen = await store.bulk_part("boost", JobFilter(), {"amount": 5}, ids=[late, *ids], after=ids[7], limit=1)
    assert (chosen.changed, chosen.next) == ((ids[8],), ids[8])
    with pytest.raises(InvalidInput, match="limit"):
        await store.bulk_part("cancel", wanted, limit=0)


async def test_a_clone_may_have_another_payload(store: Store) -> None:
    done = await enqueue_one(store, a_job("t", payload='{"n":1}'))
    await store.cancel([done])
    [copy] = (await store.clone([done], "ann", '{"n":2}')).changed
    assert (copy.payload_json, copy.parent_id, copy.created_by) == ('{"n":2}', done, "ann")
    with pytest.raises(InvalidInput):
        await store.clone([done], None, "[1]")


async def test_a_bulk_by_own_uuid_means_the_job_and_its_children(store: Store) -> None:
    own = await enqueue_one(store, a_job("parent"))
    child = await enqueue_one(store, a_job("child", parent_id=own))
    await enqueue_one(store, a_job("other"))
    assert await matched(store, JobFilter(correlation_id=str(job_uuid(own)))) == [own, child]
