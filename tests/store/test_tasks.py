"""The registry of tasks."""

from __future__ import annotations

import asyncio

import pytest

from windlass.core.known_task import DeclaredTask
from windlass.errors import InvalidInput
from windlass.store import Store
from windlass.testing import FakeClock

MAIL = DeclaredTask(name="mail", lane="fast", options='{"timeout": "2m"}')


async def test_a_declared_task_is_known_and_outlives_its_worker(store: Store, clock: FakeClock) -> None:
    assert not await store.tasks.knows("mail")
    assert await store.tasks.declare([MAIL]) == ["mail"]
    clock.advance(days=100)
    [task] = await store.tasks.list()
    assert await store.tasks.get(task.name) == task
    assert await store.tasks.get("another") is None
    assert (task.name, task.lane, task.options_json, task.breaker, task.is_declared) == (
        "mail",
        "fast",
        '{"timeout": "2m"}',
        None,
        True,
    )
    assert await store.tasks.knows("mail")


async def test_an_unchanged_task_is_written_at_most_once_a_minute(store: Store, clock: FakeClock) -> None:
    first = clock.now()
    await store.tasks.declare([MAIL])
    clock.advance(seconds=60)
    assert await store.tasks.declare([MAIL]) == []
    clock.advance(seconds=1)
    assert await store.tasks.declare([MAIL, MAIL]) == ["mail"]
    [task] = await store.tasks.list()
    assert (task.first_seen_at, task.seen_at) == (first, clock.now())


@pytest.mark.parametrize("change", [{"lane": "slow"}, {"options": "{}"}, {"breaker": "smtp"}])
async def test_a_changed_task_is_written_at_once(store: Store, change: dict[str, str]) -> None:
    await store.tasks.declare([MAIL])
    changed = DeclaredTask(**{"name": "mail", "lane": "fast", "options": '{"timeout": "2m"}', **change})
    assert await store.tasks.declare([changed]) == ["mail"]
    [task] = await store.tasks.list()
    assert (task.lane, task.options_json, task.breaker) == (changed.lane, changed.options, changed.breaker)


async def test_another_breaker_moves_the_gates(store: Store) -> None:
    before = (await store.slices()).version
    await store.tasks.declare([MAIL])
    assert (await store.slices()).version == before
    await store.tasks.declare([DeclaredTask(name="mail", lane="fast", breaker="smtp")])
    assert (await store.slices()).version == before + 1


async def test_a_task_that_was_only_paused_is_not_known(store: Store, clock: FakeClock) -> None:
    await store.tasks.pause("mail")
    assert not await store.tasks.knows("mail")
    await store.tasks.declare([MAIL])
    [task] = await store.tasks.list()
    assert (task.is_declared, task.paused_at, task.lane) == (True, clock.now(), "fast")


async def test_workers_that_start_together_declare_once(stores: list[Store]) -> None:
    tasks = [DeclaredTask(name=f"task-{number}") for number in range(50)]
    for turn in (tasks, tasks[::-1]):
        await asyncio.gather(*(store.tasks.declare(turn) for store in stores))
    assert [task.name for task in await stores[0].tasks.list()] == sorted(task.name for task in tasks)
    assert [task.name for task in await stores[0].tasks.list(after="task-48", limit=1)] == ["task-49"]


@pytest.mark.parametrize("wrong", [{"name": ""}, {"lane": "x" * 201}, {"options": "[]"}, {"breaker": ""}])
def test_bad_declarations_are_refused(wrong: dict[str, str]) -> None:
    with pytest.raises(InvalidInput):
        DeclaredTask(**{"name": "a", **wrong})


@pytest.mark.parametrize("after", ["a\0", "\ud800"])
async def test_a_page_after_what_no_database_holds_is_refused(store: Store, after: str) -> None:
    with pytest.raises(InvalidInput):
        await store.tasks.list(after=after)
