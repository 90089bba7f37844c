"""Sources that have not run for STALE_DAYS are crawled again."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from tests.support.stores import at_time
from windlass import Windlass, packs
from windlass.core.job import JobState
from windlass.core.source import NewSource, Source
from windlass.errors import ConfigError
from windlass.packs import staleness
from windlass.store import Store
from windlass.store.nouns import Sources
from windlass.testing import run_all


async def known(app: Windlass, count: int) -> None:
    store = await app.store()
    for place in range(count):
        await store.sources.upsert(NewSource(f"s{place}", "name", "https://example.org"))


async def crawls(app: Windlass) -> list[str]:
    store = await app.store()
    assert isinstance(store, Store)
    jobs = (await store.list_jobs()).jobs
    return sorted(job.subject or "" for job in jobs if job.task == staleness.CRAWL and job.state is JobState.PENDING)


async def test_what_never_ran_or_ran_long_ago_is_enqueued_once(app: Windlass) -> None:
    packs.install(app, ["staleness"])
    await known(app, 4)
    store = await app.store()
    now = await store.clock()
    await at_time(store, now - timedelta(days=31)).sources.touch("s1")
    await at_time(store, now - timedelta(days=29)).sources.touch("s2")
    await app.enqueue(staleness.TASK)
    await app.enqueue(staleness.TASK)
    first, second = await run_all(app)
    assert [first.result, second.result] == [{"enqueued": 3}, {"enqueued": 0}]
    assert await crawls(app) == ["s0", "s1", "s3"]
    job = next(job for job in (await store.list_jobs()).jobs if job.subject == "s1")
    assert (job.priority, job.unique_key, job.retry, job.created_by) == (0, "s1", "crawl", "enqueue-stale")


async def test_many_are_read_page_by_page(app: Windlass, monkeypatch: pytest.MonkeyPatch) -> None:
    await known(app, 9)
    store = await app.store()
    long_ago = await store.clock() - timedelta(days=40)
    for place in range(5):
        # Two of the same age: a page may end between them.
        await at_time(store, long_ago + timedelta(days=place // 2)).sources.touch(f"s{place}")
    asked = []

    async def stale(self: Sources, before: datetime, *, after: Source | None = None) -> list[Source]:
        asked.append(after)
        return await read(self, before, after=after, limit=2)

    read = Sources.stale
    monkeypatch.setattr(Sources, "stale", stale)
    assert await staleness.enqueue_stale_sources(app) == 9
    assert len(asked) == 6
    assert len(await crawls(app)) == 9


def test_a_pack_nobody_knows_is_named() -> None:
    with pytest.raises(ConfigError, match="there is no pack 'crowl'"):
        packs.install(Windlass(), ["crowl"])


def test_a_pack_without_its_library_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(packs.PACKS, "odd", "windlass_nowhere")
    with pytest.raises(ConfigError, match=r"odd needs windlass_nowhere; install windlass\[packs\]"):
        packs.install(Windlass(), ["odd"])


def test_commands_are_never_brought_without_being_asked_for() -> None:
    assert "command" in packs.PACKS
    assert "command" not in packs.SAFE
