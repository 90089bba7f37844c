"""An enqueue that shows its row shows what is in the database."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from tests.store.builders import a_job, claim, recurring
from windlass.core.job import NewJob, OnConflict, UniqueScope
from windlass.core.payload import encode, encode_object
from windlass.core.retry import RetrySpec
from windlass.errors import DuplicateJob
from windlass.store import Store
from windlass.testing import FakeClock

PAYLOAD = encode_object({"a": [1, 2.5, None, True, "ü\\n\u2028'"], "b": {"c": {}}, "d": 1e300})


def kinds(clock: FakeClock) -> list[NewJob]:
    hour = timedelta(hours=1)
    rule = recurring()
    return [
        a_job("plain"),
        a_job("payload", payload=PAYLOAD, priority=7, lane="slow"),
        a_job("later", delay=hour),
        a_job("now", delay=timedelta()),
        a_job("at", run_at=clock.now() + hour),
        a_job("past", run_at=clock.now() - hour),
        a_job("rule", recurrence=rule),
        a_job("named", recurrence=rule, name="nightly", run_at=clock.now() + 2 * hour),
        a_job("due rule", recurrence=rule, run_at=clock.now() - hour, slot_at=clock.now() + hour),
        a_job("template", recurrence=rule, spawn=True, child_key="k", run_at=clock.now()),
        a_job("declared", recurrence=replace(rule, unit="hours"), name="d", declared_by="app"),
        a_job("unique", unique_key="k", unique_scope=UniqueScope.FOREVER),
        a_job(
            "full",
            max_attempts=9,
            retry=RetrySpec(profile="interval", base=timedelta(seconds=5)),
            timeout=timedelta(milliseconds=1500),
            subject="s",
            correlation_id="c",
            parent_id=3,
            target_count=0,
            item_key=encode(["a", "b"]),
            collection="found",
            metadata=encode_object({"k": [1.0]}),
            description="why",
            created_by="ann",
        ),
    ]


async def test_the_row_is_the_one_in_the_database(store: Store, clock: FakeClock) -> None:
    for job in kinds(clock):
        [stored] = await store.enqueue_and_get([job])
        assert stored.is_duplicate is False
        assert stored.job == await store.get(stored.id), job.task


async def test_many_rows_are_those_in_the_database(store: Store, clock: FakeClock) -> None:
    stored = await store.enqueue_and_get(kinds(clock))
    assert [one.job for one in stored] == [await store.get(one.id) for one in stored]
    assert [one.job.task for one in stored] == [job.task for job in kinds(clock)]
    assert await store.enqueue_and_get([]) == []


async def test_without_a_given_clock_the_times_are_the_database_s(store: Store) -> None:
    for job in (a_job("x"), a_job("y", delay=timedelta(seconds=9)), a_job("z", recurrence=recurring())):
        [stored] = await store.enqueue_and_get([job])
        assert stored.job == await store.get(stored.id)


async def test_a_duplicate_shows_its_holder(store: Store, clock: FakeClock) -> None:
    [first] = await store.enqueue_and_get([a_job("x", unique_key="k", lane="default")])
    clock.advance(seconds=5)
    await claim(store)
    [again, other, twin] = await store.enqueue_and_get(
        [a_job("x", unique_key="k"), a_job("x", unique_key="o"), a_job("x", unique_key="o")]
    )
    assert (again.is_duplicate, other.is_duplicate, twin.is_duplicate) == (True, False, True)
    assert again.job == await store.get(first.id)
    assert other.job == twin.job == await store.get(other.id)
    with pytest.raises(DuplicateJob):
        await store.enqueue_and_get([a_job("x", unique_key="k", on_conflict=OnConflict.REJECT)])


async def test_a_replaced_job_shows_what_it_became(store: Store) -> None:
    await store.enqueue([a_job("x", unique_key="k", payload='{"a":1}')])
    wanted = a_job("x", unique_key="k", payload='{"a":2}', priority=4, on_conflict=OnConflict.REPLACE)
    [stored] = await store.enqueue_and_get([wanted])
    assert (stored.is_duplicate, stored.job.payload_json, stored.job.priority) == (True, '{"a":2}', 4)


async def test_of_racing_enqueues_of_a_key_all_see_the_one_job(store: Store) -> None:
    async def one() -> tuple[int, bool]:
        [stored] = await store.enqueue_and_get([a_job("x", unique_key="k")])
        return stored.id, stored.is_duplicate

    answers = await asyncio.gather(*(one() for _ in range(20)))
    assert len({number for number, _ in answers}) == 1
    assert sorted(is_duplicate for _, is_duplicate in answers) == [False, *[True] * 19]
