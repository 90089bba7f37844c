"""A read that was given a time ends when that is over, and no reader keeps the engine waiting."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from pathlib import Path
from random import Random

import pytest

from tests.store.builders import a_job
from tests.support.stores import fresh_url
from tests.support.stuck_reads import stuck_sources
from windlass.core.job import JobState, Lease
from windlass.core.outcome import Returned, Run, decide
from windlass.core.source import NewSource
from windlass.errors import StoreBusy
from windlass.store import SqlStore, open_store

BOUND = timedelta(milliseconds=300)


@pytest.fixture(params=["sqlite-file", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    server = request.getfixturevalue("postgres_server") if request.param == "postgres" else None
    with fresh_url(request.param, tmp_path, server) as made:
        yield made


@pytest.fixture
async def store(url: str) -> AsyncIterator[SqlStore]:
    opened = open_store(url, rng=Random(1))
    await opened.sources.upsert(NewSource(id="s", name="s", url="https://example.org"))
    yield opened
    await opened.aclose()


async def run_a_job(store: SqlStore) -> None:
    """Do everything the engine does with a job."""
    await store.enqueue([a_job()])
    lease = Lease(worker="w", token=1, length=timedelta(seconds=20))
    [job] = await store.claim(await store.slices(), 1, lease)
    assert len(await store.renew([(job.id, job.token, None)], timedelta(seconds=20))) == 1
    ending = decide(job, Returned(None), Run(), now=await store.clock(), rng=Random(1))
    assert await store.finish([ending]) == {job.id: JobState.COMPLETED}


async def test_read_past_its_bound_is_ended_and_the_next_one_is_answered(url: str, store: SqlStore) -> None:
    bounded = store.bounded(BOUND)
    with stuck_sources(url):
        began = time.monotonic()
        with pytest.raises(StoreBusy, match=r"took longer than 0\.3 s|statement timeout"):
            await bounded.sources.list()
        assert time.monotonic() - began < 3
        # Those that wait behind others get no more time than these.
        answers = await asyncio.gather(*(bounded.sources.list() for _ in range(20)), return_exceptions=True)
        assert {type(answer) for answer in answers} == {StoreBusy}
        assert time.monotonic() - began < 6
        assert len(await bounded.tasks.list()) == 0
    assert [one.id for one in await bounded.sources.list()] == ["s"]


async def test_writes_of_a_bounded_store_take_the_time_they_need(store: SqlStore) -> None:
    bounded = store.bounded(timedelta(microseconds=1))
    assert len(await bounded.enqueue([a_job() for _ in range(2000)])) == 2000


@pytest.mark.parametrize("is_bounded", [False, True])
async def test_engine_does_not_wait_for_readers(url: str, store: SqlStore, *, is_bounded: bool) -> None:
    read_by = store.bounded(timedelta(seconds=5)) if is_bounded else store
    with stuck_sources(url, seconds=3):
        readers = [asyncio.create_task(read_by.sources.list()) for _ in range(3)]
        await asyncio.sleep(0.2)
        await run_a_job(store)
        assert not any(reader.done() for reader in readers)
        if is_bounded:
            # Nor do those that read little.
            assert await store.tasks.list() == []
            assert not any(reader.done() for reader in readers)
    await asyncio.gather(*readers, return_exceptions=True)
