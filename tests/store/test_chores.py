"""Chores: one instance of many for each interval."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from windlass.core.audit import Actor
from windlass.core.chore import ChorePermit
from windlass.errors import InvalidInput
from windlass.store import Store
from windlass.testing import FakeClock

EVERY = timedelta(minutes=5)


async def test_of_many_instances_one_gets_the_permit_for_each_interval(stores: list[Store], clock: FakeClock) -> None:
    for turn in range(1, 5):
        asked = [store.chores.due("age", EVERY, f"w{place}") for place, store in enumerate(stores * 4)]
        permits = [permit for permit in await asyncio.gather(*asked) if permit is not None]
        assert permits == [ChorePermit("age", turn, None)]
        clock.advance(minutes=5)


async def test_a_chore_is_not_due_before_its_interval_has_passed(store: Store, clock: FakeClock) -> None:
    assert await store.chores.due("age", EVERY, "w")
    clock.advance(seconds=299)
    assert await store.chores.due("age", EVERY, "w") is None
    clock.advance(seconds=1)
    assert await store.chores.due("age", EVERY, "w")


async def test_what_a_chore_says_of_itself_is_kept(store: Store, clock: FakeClock) -> None:
    permit = await store.chores.due("prune", EVERY, "ada")
    assert permit is not None
    assert await store.chores.done(permit, 12, timedelta(milliseconds=34), error="bo\0om", cursor="17")
    [chore] = await store.chores.list()
    assert (chore.name, chore.version, chore.worker, chore.last_run_at) == ("prune", 1, "ada", clock.now())
    assert (chore.last_rows, chore.last_duration_ms, chore.last_error, chore.cursor) == (12, 34, "bo\ufffdom", "17")
    assert chore.due_at == clock.now() + EVERY
    clock.advance(minutes=5)
    assert await store.chores.due("prune", EVERY, "bob") == ChorePermit("prune", 2, "17", 12, "bo\ufffdom")


async def test_a_chore_with_more_to_do_comes_again_before_its_interval(store: Store, clock: FakeClock) -> None:
    permit = await store.chores.due("prune", EVERY, "ada")
    assert permit is not None
    await store.chores.done(permit, 12, timedelta(), cursor="17", again=timedelta(seconds=1))
    assert await store.chores.due("prune", EVERY, "bob") is None
    clock.advance(seconds=1)
    assert await store.chores.due("prune", EVERY, "bob") == ChorePermit("prune", 2, "17", 12)


async def test_a_crashed_instance_is_replaced_and_has_no_say_any_more(store: Store, clock: FakeClock) -> None:
    late = await store.chores.due("age", EVERY, "late")
    clock.advance(minutes=5)
    quick = await store.chores.due("age", EVERY, "quick")
    assert late is not None
    assert quick is not None
    assert not await store.chores.done(late, 1, timedelta())
    assert await store.chores.done(quick, 2, timedelta())
    [chore] = await store.chores.list()
    assert (chore.last_rows, chore.worker) == (2, "quick")


async def test_a_paused_chore_is_never_due(store: Store) -> None:
    acting = store.acting(Actor("ada"))
    assert await acting.chores.pause("age")
    assert not await acting.chores.pause("age")
    assert await store.chores.due("age", EVERY, "w") is None
    assert await acting.chores.resume("age")
    assert not await store.chores.resume("age")
    permit = await store.chores.due("age", EVERY, "w")
    await store.chores.pause("age")
    assert permit is not None
    assert await store.chores.done(permit, 0, timedelta())
    assert {line.action for line in await store.audit.list()} == {"pause chore", "resume chore"}


async def test_bad_chores_are_refused(store: Store) -> None:
    with pytest.raises(InvalidInput, match="chore"):
        await store.chores.due("", EVERY, "w")
    with pytest.raises(InvalidInput, match="every"):
        await store.chores.due("age", timedelta(), "w")
    with pytest.raises(InvalidInput, match="rows"):
        await store.chores.done(ChorePermit("age", 1, None), -1, timedelta())
