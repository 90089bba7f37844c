"""Items: added under a lease, each kept once in its collection, counted exactly."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

import psycopg
import pytest

from tests.store.builders import a_job, claim_one, due, end, failure, running
from tests.store.rivals import rivals
from tests.support.raw import execute
from windlass.core.item import Added, ItemCount
from windlass.core.job import JobState
from windlass.errors import InvalidInput, InvalidPayload, JobNotFound, LeaseLost
from windlass.store import Store
from windlass.store.calls import items as calls
from windlass.store.postgres import Postgres
from windlass.testing import FakeClock


def phones(*numbers: object) -> list[dict[str, Any]]:
    return [{"phone": str(number)} for number in numbers]


async def kept(store: Store, collection: str) -> list[Any]:
    return [item.data for item in await store.items.list(collection=collection)]


async def test_what_is_new_is_kept_and_what_is_known_is_counted(store: Store, clock: FakeClock) -> None:
    held = await running(store)
    clock.advance(seconds=5)
    assert await store.items.add(held.id, held.token, phones(1, 2, 3)) == Added(3, 0)
    assert await store.items.add(held.id, held.token, phones(3, 4)) == Added(1, 1)
    job = await store.get(held.id)
    assert (job.progress_count, job.result_count, job.last_progress_at) == (5, 4, clock.now())
    assert job.lease_expires_at == held.lease_expires_at
    assert await kept(store, "work") == phones(1, 2, 3, 4)


async def test_twins_in_one_call_count_as_duplicates_and_the_first_is_kept(store: Store) -> None:
    held = await running(store)
    twins = [{"phone": "+1 2", "name": "first"}, {"phone": "3"}, {"phone": "1-2", "name": "second"}]
    assert await store.items.add(held.id, held.token, twins) == Added(2, 1)
    assert await kept(store, "work") == twins[:2]


async def test_an_item_is_kept_as_it_came(store: Store, clock: FakeClock) -> None:
    held = await running(store)
    odd = {"z": 1, "a": [1.5, True, None, {}], "ü": "ß\n\"'", "big": 2**63, "": ""}
    await store.items.add(held.id, held.token, [odd])
    [item] = await store.items.list(job_id=held.id)
    assert list(item.data.items()) == list(odd.items())
    assert (item.collection, item.job_id, item.created_at) == ("work", held.id, clock.now())


async def test_nothing_is_nothing(store: Store) -> None:
    held = await running(store)
    assert await store.items.add(held.id, held.token, []) == Added(0, 0)


async def test_jobs_of_a_task_share_a_collection_unless_they_name_one(store: Store) -> None:
    first = await running(store)
    second = await running(store)
    other = await running(store, a_job(collection="berlin"))
    assert await store.items.add(first.id, first.token, phones(1)) == Added(1, 0)
    assert await store.items.add(second.id, second.token, phones(1, 2)) == Added(1, 1)
    assert await store.items.add(other.id, other.token, phones(1)) == Added(1, 0)
    assert [item.job_id for item in await store.items.list(collection="work")] == [first.id, second.id]
    assert [item.collection for item in await store.items.list(job_id=other.id)] == ["berlin"]


async def test_collections_are_named_in_order_and_page_by_page(store: Store) -> None:
    assert await store.items.collections() == []
    for name in ("ulm", "berlin", "aachen"):
        held = await running(store, a_job(collection=name))
        await store.items.add(held.id, held.token, phones(*range(20)))
    assert await store.items.collections() == ["aachen", "berlin", "ulm"]
    assert await store.items.collections(limit=2) == ["aachen", "berlin"]
    assert await store.items.collections(after="berlin") == ["ulm"]


async def test_a_job_says_which_fields_make_the_key(store: Store) -> None:
    held = await running(store, a_job(item_key='["name","city"]'))
    found = [{"name": "Ann", "city": "Ulm", "phone": "1"}, {"name": "Ann", "city": "Ulm", "phone": "2"}, {"name": "Ann"}]
    assert await store.items.add(held.id, held.token, found) == Added(2, 1)
    assert await store.items.add(held.id, held.token, found) == Added(0, 3)


async def test_a_first_item_says_that_a_prefetched_run_has_started(store: Store, clock: FakeClock) -> None:
    held = await running(store, started=False)
    clock.advance(seconds=1)
    await store.items.add(held.id, held.token, phones(1))
    assert (await store.get(held.id)).started_at == clock.now()
    await end(store, clock, held)


async def test_a_late_holder_adds_nothing(store: Store, clock: FakeClock) -> None:
    held = await running(store)
    clock.advance(seconds=31)
    await store.reclaim()
    await due(store)
    again = await claim_one(store)
    for token in (held.token, 0, 2**80):
        with pytest.raises(LeaseLost):
            await store.items.add(held.id, token, phones(1))
    assert await store.items.list(job_id=held.id) == []
    assert await store.items.add(again.id, again.token, phones(1)) == Added(1, 0)


async def test_a_cancelled_or_finished_run_adds_nothing(store: Store, clock: FakeClock) -> None:
    held = await running(store)
    await store.cancel([held.id])
    with pytest.raises(LeaseLost):
        await store.items.add(held.id, held.token, phones(1))
    done = await running(store)
    await end(store, clock, done)
    with pytest.raises(LeaseLost):
        await store.items.add(done.id, done.token, phones(1))


@pytest.mark.parametrize("job_id", [0, -1, 404, 2**70])
async def test_an_unknown_job_has_no_items(store: Store, job_id: int) -> None:
    with pytest.raises(JobNotFound):
        await store.items.add(job_id, 1, phones(1))


async def test_items_stay_when_their_run_fails(store: Store, clock: FakeClock) -> None:
    held = await running(store)
    await store.items.add(held.id, held.token, phones(1))
    await end(store, clock, held, failure())
    job = await store.get(held.id)
    assert (job.state, job.result_count) == (JobState.SCHEDULED, 1)
    assert await kept(store, "work") == phones(1)


async def test_a_bad_item_is_named_and_nothing_is_written(store: Store) -> None:
    held = await running(store)
    with pytest.raises(InvalidPayload) as refused:
        await store.items.add(held.id, held.token, [*phones(1), {"x": float("inf")}])
    assert refused.value.field == "items[1]"
    assert await store.items.list(job_id=held.id) == []
    assert (await store.get(held.id)).progress_count == 0


async def test_a_thousand_items_with_the_longest_keys_fit_in_one_call(store: Store) -> None:
    held = await running(store, a_job(item_key='["id"]', collection="😀" * 200))
    found = [{"id": f"{place:04}" + "😀" * 180} for place in range(1000)]
    assert await store.items.add(held.id, held.token, found) == Added(1000, 0)
    assert await store.items.add(held.id, held.token, found[::-1]) == Added(0, 1000)


async def test_items_are_read_page_by_page(store: Store) -> None:
    held = await running(store)
    other = await running(store, a_job(collection="other"))
    for number in range(7):
        await store.items.add(held.id, held.token, phones(number))
        await store.items.add(other.id, other.token, phones(number))
    first = await store.items.list(collection="work", limit=3)
    rest = await store.items.list(collection="work", after=first[-1].id)
    assert [item.data for item in [*first, *rest]] == phones(*range(7))
    assert len(await store.items.list(job_id=other.id, limit=2)) == 2
    everything = [item async for item in store.items.export("work", page=2)]
    assert everything == [*first, *rest]
    assert [item async for item in store.items.export("work", after=first[-1].id)] == rest
    assert [item async for item in store.items.export("nothing")] == []


@pytest.mark.parametrize(
    ("field", "asked"),
    [
        ("limit", {"collection": "work", "limit": 0}),
        ("limit", {"collection": "work", "limit": 501}),
        ("collection", {}),
        ("collection", {"collection": "work", "job_id": 1}),
        ("collection", {"collection": ""}),
        ("after", {"collection": "work", "after": 2**63}),
        ("job_id", {"job_id": 2**63}),
    ],
)
async def test_a_bad_question_is_refused_by_name(store: Store, field: str, asked: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput) as refused:
        await store.items.list(**asked)
    assert refused.value.field == field


async def test_a_collection_is_counted_up_to_a_bound(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    held = await running(store)
    monkeypatch.setattr(calls, "MOST_COUNTED", 3)
    assert await store.items.count("work") == ItemCount(0, is_exact=True)
    await store.items.add(held.id, held.token, phones(1, 2, 3))
    assert await store.items.count("work") == ItemCount(3, is_exact=True)
    await store.items.add(held.id, held.token, phones(4, 5))
    assert await store.items.count("work") == ItemCount(3, is_exact=False)


async def test_racing_adders_of_the_same_keys_count_exactly(store: Store, backend: str) -> None:
    jobs = [await running(store) for _ in range(8)]

    async def add(one: Store, place: int) -> list[Added]:
        rng = Random(place)
        job = jobs[place]
        return [await one.items.add(job.id, job.token, phones(*rng.sample(range(60), 25))) for _ in range(8)]

    async with rivals(store) as stores:
        answers = await asyncio.gather(*(add(stores[place % len(stores)], place) for place in range(8)))
    present = await store.items.list(collection="work")
    assert sum(one.added for mine in answers for one in mine) == len(present) == 60
    for job, mine in zip(jobs, answers, strict=True):
        row = await store.get(job.id)
        assert row.result_count == sum(one.added for one in mine) == len(await store.items.list(job_id=job.id))
        assert row.progress_count == 25 * 8
    if backend == "postgres":
        assert await execute(store, "select deadlocks from pg_stat_database where datname = current_database()") == [(0,)]


async def test_a_worker_that_adds_while_its_lease_is_taken_back_is_refused_or_counted(store: Store, clock: FakeClock) -> None:
    jobs = [await running(store) for _ in range(20)]
    clock.advance(seconds=31)
    adds = [store.items.add(job.id, job.token, phones(f"{job.id}000")) for job in jobs]
    *answers, _ = await asyncio.gather(*adds, store.reclaim(), return_exceptions=True)
    for job, answer in zip(jobs, answers, strict=True):
        assert isinstance(answer, Added | LeaseLost)
        assert (await store.get(job.id)).result_count == isinstance(answer, Added)


async def test_a_reader_that_goes_on_after_the_last_item_it_saw_misses_none(store: Store) -> None:
    if not isinstance(store.database, Postgres):
        pytest.skip("there is one writer at a time")
    slow = await running(store)
    quick = await running(store)
    async with await psycopg.AsyncConnection.connect(store.database.dsn) as connection:
        await store.run(calls.add(slow.id, slow.token, phones(1)), connection)
        other = asyncio.create_task(store.items.add(quick.id, quick.token, phones(2)))
        await asyncio.wait({other}, timeout=0.3)
        seen = list(await store.items.list(collection="work"))
        await connection.commit()
    await other
    seen += await store.items.list(collection="work", after=seen[-1].id if seen else 0)
    assert [item.data for item in seen] == phones(1, 2)
