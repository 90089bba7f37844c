"""The nouns beside jobs, for asyncio and for code without an event loop."""

from __future__ import annotations

import inspect
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from windlass import UnknownTask, Windlass
from windlass.core.blocking import run
from windlass.core.known_task import DeclaredTask
from windlass.core.source import NewSource
from windlass.core.worker import NewWorker
from windlass.store import audit, breakers, gates, letters, nouns, schedules
from windlass.store.calls import letters as calls
from windlass.store.letters import Letters
from windlass.store.noun import Noun


def is_noun(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, Noun) and value is not Noun


MODULES = (audit, breakers, gates, letters, nouns, schedules)
NOUNS = sorted({noun for module in MODULES for noun in vars(module).values() if is_noun(noun)}, key=lambda noun: noun.__name__)


@pytest.mark.parametrize("noun", NOUNS)
def test_every_verb_made_of_a_call_has_a_twin(noun: type[Noun]) -> None:
    twins = {name for name in dir(noun) if name.endswith("_sync")}
    assert twins
    for name in twins:
        verb, twin = getattr(noun, name.removesuffix("_sync")), getattr(noun, name)
        assert inspect.iscoroutinefunction(verb)
        assert not inspect.iscoroutinefunction(twin)
        assert twin.__doc__ == verb.__doc__


async def test_lanes_are_paused_drained_and_resumed(app: Windlass) -> None:
    assert (await app.lanes.pause("slow")).is_paused
    assert app.lanes.drain_sync("slow").running == 0
    assert [lane.name for lane in await app.lanes.list() if lane.paused_at is not None] == ["slow"]
    assert not app.lanes.resume_sync("slow").is_paused


async def test_tasks_of_the_fleet_are_known_and_paused(app: Windlass) -> None:
    with pytest.raises(UnknownTask):
        await app.enqueue("elsewhere")
    await (await app.store()).tasks.declare([DeclaredTask(name="elsewhere")])
    assert app.known_tasks.knows_sync("elsewhere")
    assert app.enqueue_sync("elsewhere").id == (await app.list()).jobs[0].id
    await app.known_tasks.pause("elsewhere")
    assert [task.name for task in app.known_tasks.list_sync() if task.paused_at is not None] == ["elsewhere"]


async def test_sources_settings_and_workers_are_read_and_set(app: Windlass) -> None:
    source = await app.sources.upsert(NewSource("news", "News", "https://example.org/"))
    assert app.sources.list_sync() == [source]
    stored = app.stored_settings.set_sync("LEASE_SEC_DEFAULT", 60, by="ann")
    assert await app.stored_settings.all() == [stored]
    await (await app.store()).workers.register(NewWorker(id="one", host="here", pid=7, version="1"))
    assert [worker.id for worker in app.workers.list_sync()] == ["one"]
    assert await app.items.list(collection="news") == app.items.list_sync(collection="news") == []


async def test_runs_are_counted(app: Windlass) -> None:
    now = datetime.now(UTC)
    assert await app.runs.totals() == app.runs.totals_sync() == []
    assert await app.runs.minutes(now - timedelta(hours=1), now) == []
    assert app.insights.scheduler_sync() == await app.insights.scheduler()
    assert list(await app.audit.list()) == []


async def test_the_blocking_side_has_them_as_coroutines_that_never_suspend(app: Windlass) -> None:
    assert run(app.blocking.lanes.pause("slow")).is_paused
    assert run(app.lanes.blocking.resume("slow")).name == "slow"


def test_a_verb_has_the_names_and_words_of_its_call() -> None:
    verb: Any = Letters.acknowledge_sync
    assert verb.__doc__ == calls.acknowledge.__doc__
    assert list(inspect.signature(verb).parameters) == ["ids", "by", "note"]
