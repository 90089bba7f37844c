"""Many feeds that behave in every way, fetched by a worker that is killed in the middle: none is lost, each keeps the rules."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.crash.processes import until
from tests.packs.feed_site import Answer, Site, a_site, feed, garbage, hang_up, silence, status, zipped
from tests.support.stores import fresh_url
from windlass import Windlass
from windlass.core.feed import Feed
from windlass.core.feed_timing import SPREAD
from windlass.core.filter import JobFilter
from windlass.core.job import Job, JobState
from windlass.core.page import JobQuery
from windlass.store import Store
from windlass.store.doctor import check

IS_LONG = os.environ.get("WINDLASS_TEST_LONG") == "1"
FEEDS = 1_000 if IS_LONG else 60
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
SLACK = timedelta(seconds=90)
PATIENCE_S = 900.0 if IS_LONG else 90.0
OURS = JobFilter(tasks=("fetch_feed",))


class Kind(NamedTuple):
    """A way to behave, and what it leaves after two fetches."""

    answer: Answer
    wait: timedelta
    failures: int = 0
    entries: int = 3


KINDS = {
    "unchanged": Kind(feed(1, 2, 3, etag='"v"'), HOUR),
    "cached": Kind(feed(1, 2, 3, cache_control="max-age=1200"), 20 * MINUTE),
    "zipped": Kind(zipped(1, 2, 3), HOUR),
    "moved": Kind(status(301, location="/unchanged/new"), HOUR),
    "broken": Kind(status(500), 2 * HOUR, 2, 0),
    "busy": Kind(status(503, retry_after="10800"), 3 * HOUR, 2, 0),
    "garbage": Kind(garbage, 2 * HOUR, 2, 0),
    "away": Kind(hang_up, 2 * HOUR, 2, 0),
    "silent": Kind(silence, 2 * HOUR, 2, 0),
}
NAMES = list(KINDS)


@pytest.fixture(params=["sqlite-file", pytest.param("postgres", marks=pytest.mark.skipif(not IS_LONG, reason="long form"))])
async def app(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Windlass]:
    server = request.getfixturevalue("postgres_server") if request.param == "postgres" else None
    with fresh_url(request.param, tmp_path, server) as url:
        async with Windlass(url) as made:
            yield made


@contextmanager
def worker(app: Windlass, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    ours = {
        "WINDLASS_DATABASE_URL": app.settings.database_url,
        "WINDLASS_LEASE_SECONDS": "2",
        "WINDLASS_RECLAIM_INTERVAL": "200ms",
        "WINDLASS_POLL_INTERVAL": "200ms",
        "WINDLASS_POOLS": "*=20",
    }
    command = [sys.executable, "-m", "windlass", "worker", "tests.packs.feeds_app:app", "--log-level", "warning"]
    with (folder / "worker.log").open("ab") as log:
        process = subprocess.Popen(command, env=os.environ | ours, stdout=log, stderr=log)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@asynccontextmanager
async def many_feeds(app: Windlass) -> AsyncIterator[Site]:
    async with a_site() as site:
        for place in range(FEEDS):
            name = NAMES[place % len(NAMES)]
            site.pages[f"/{name}/{place}"] = KINDS[name].answer
        site.pages["/unchanged/new"] = KINDS["unchanged"].answer
        for path in list(site.pages):
            if path != "/unchanged/new":
                await app.feeds.subscribe(site.url(path), "ann")
        yield site


async def jobs_of(app: Windlass) -> dict[int, Job]:
    store = await app.store()
    pages = [page for start in range(0, FEEDS, 500) async for page in _page(store, start)]
    return {job.id: job for job in pages}


async def _page(store: object, start: int) -> AsyncIterator[Job]:
    assert isinstance(store, Store)
    for job in (await store.list_jobs(JobQuery(filter=OURS, limit=500, offset=start))).jobs:
        yield job


async def feeds_of(app: Windlass) -> list[Feed]:
    found: list[Feed] = []
    while page := await app.feeds.list(after=found[-1].id if found else 0):
        found += page
    return found


async def all_ended(app: Windlass, since: datetime) -> bool:
    # Asking without a pause would leave the site, which is in this process, no time to answer.
    await asyncio.sleep(FEEDS / 500)
    jobs = await jobs_of(app)
    return all(job.state is JobState.SCHEDULED and job.finished_at and job.finished_at > since for job in jobs.values())


async def rounds(app: Windlass, site: Site, folder: Path) -> None:
    """Fetch everything twice; the worker is killed in the middle of the first time."""
    store = await app.store()
    start = await store.clock()
    with worker(app, folder) as first:
        await until(lambda: len(site.seen) > FEEDS // 3, "a third of the feeds to be asked for")
        first.kill()
        first.wait()
    with worker(app, folder):
        await until(lambda: all_ended(app, start), "every feed to be fetched once", within=PATIENCE_S)
        again = await store.clock()
        await app.bulk("run_now", OURS)
        await until(lambda: all_ended(app, again), "every feed to be fetched twice", within=PATIENCE_S)


async def test_no_feed_is_lost_and_each_keeps_its_rules(app: Windlass, tmp_path: Path) -> None:
    async with many_feeds(app) as site:
        await rounds(app, site, tmp_path)
    jobs = await jobs_of(app)
    found = await feeds_of(app)
    assert len(found) == len(jobs) == len({one.job_id for one in found}) == FEEDS
    for one in found:
        name = one.url.split("/")[3]
        kind, job = KINDS[name], jobs[one.job_id or 0]
        assert job.name == f"fetch_feed:{one.id}"
        assert one.next_fetch_at == job.run_at
        assert job.finished_at is not None
        assert -SLACK < job.run_at - job.finished_at - kind.wait < kind.wait * SPREAD + SLACK, (
            name,
            job.run_at - job.finished_at,
        )
        assert (one.consecutive_failures, one.last_error is None) == (kind.failures, kind.failures == 0), name
        assert len(await app.feeds.entries(one.id)) == kind.entries, name
        assert (one.fetch_url is not None) == (name == "moved")
    assert any(asked.headers.get("if-none-match") == '"v"' for asked in site.seen)
    store = await app.store()
    assert isinstance(store, Store)
    assert await check(store) == []
