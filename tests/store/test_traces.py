"""The trace of an enqueue stays with its job, for each of its runs."""

from __future__ import annotations

from tests.store.builders import a_job, a_lease, claim, claim_one, due, end, enqueue_one
from windlass.core.job import NewJob
from windlass.core.outcome import Failure, Raised
from windlass.core.pull import PickOrder, Pull
from windlass.store import Store
from windlass.testing import FakeClock

PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
OTHER = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b8-01"


async def test_a_claim_brings_the_trace_and_others_have_none(store: Store) -> None:
    jobs = [NewJob(task="work", traceparent=PARENT), NewJob(task="work"), NewJob(task="work", traceparent=OTHER)]
    made = [one.id for one in await store.enqueue(jobs)]
    assert {job.id: job.traceparent for job in await claim(store)} == dict(zip(made, (PARENT, None, OTHER), strict=True))
    assert [(await store.get(number)).traceparent for number in made] == [PARENT, None, OTHER]


async def test_an_enqueue_shows_the_trace_it_kept(store: Store) -> None:
    [stored] = await store.enqueue_and_get([a_job(traceparent=PARENT)])
    assert stored.job.traceparent == PARENT


async def test_each_try_has_the_same_trace(store: Store, clock: FakeClock) -> None:
    await enqueue_one(store, a_job(traceparent=PARENT))
    await end(store, clock, await claim_one(store), Raised(Failure("no luck")))
    clock.advance(hours=1)
    await due(store)
    assert (await claim_one(store)).traceparent == PARENT


async def test_a_lease_that_ran_out_leaves_the_trace(store: Store, clock: FakeClock) -> None:
    number = await enqueue_one(store, a_job(traceparent=PARENT))
    await claim_one(store)
    clock.advance(hours=1)
    [lapsed] = await store.lapsed()
    assert lapsed.job.traceparent == PARENT
    assert await store.reclaim() == [number]
    await due(store)
    assert (await claim_one(store)).traceparent == PARENT


async def test_a_pull_brings_the_trace_in_any_order(store: Store) -> None:
    for order in PickOrder:
        await enqueue_one(store, a_job(lane="pull", traceparent=PARENT))
        [pulled] = await store.pull_each([Pull(("pull",), a_lease())], order)
        assert pulled is not None
        assert pulled.traceparent == PARENT


async def test_a_clone_is_not_part_of_the_trace(store: Store) -> None:
    number = await enqueue_one(store, a_job(traceparent=PARENT))
    copy = NewJob.like(await store.get(number))
    assert copy.traceparent is None
