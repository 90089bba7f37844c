"""How deep the queue was is sampled once for all servers."""

from __future__ import annotations

from datetime import timedelta

from tests.store.builders import claim_one, end, enqueue_one, failure
from windlass.core.sample import Sample
from windlass.store import Store
from windlass.testing import FakeClock


async def test_each_minute_has_one_sample_the_last_and_an_hour_of_them_is_kept(store: Store, clock: FakeClock) -> None:
    first_minute = clock.now().replace(second=0, microsecond=0)
    await enqueue_one(store)
    assert await store.samples.record(await store.samples.take()) == 1
    for _ in range(2):
        await enqueue_one(store)
    await claim_one(store)
    retried = await claim_one(store)
    await end(store, clock, retried, failure())
    clock.advance(seconds=1)
    await store.samples.record(await store.samples.take())
    [kept] = (await store.insights.overview()).samples
    assert kept == Sample(first_minute, 1, timedelta(seconds=1), 1, 1, kept.in_per_second)
    assert kept.in_per_second > 0
    for _ in range(62):
        clock.advance(minutes=1)
        await store.samples.record(await store.samples.take())
    found = (await store.insights.overview()).samples
    last_minute = clock.now().replace(second=0, microsecond=0)
    assert [one.minute for one in found] == [last_minute - timedelta(minutes=59 - number) for number in range(60)]
    assert await store.samples.record(found[-1]) == 1
    clock.advance(hours=3)
    # What is too old is deleted with the next one.
    assert await store.samples.record(await store.samples.take()) == 62
    assert len((await store.insights.overview()).samples) == 1
