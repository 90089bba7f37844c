"""Crawls again what has not been crawled for long."""

from __future__ import annotations

from datetime import timedelta

from windlass.app import Windlass
from windlass.core.job import NewJob
from windlass.core.payload import encode_object
from windlass.core.retry import RetrySpec
from windlass.core.source import Source

TASK = "enqueue-stale"
CRAWL = "crawl"
EVERY = "6h"
_CRAWL_RETRY = RetrySpec(profile="crawl")


def install(app: Windlass) -> None:
    """Declare the task; it finds what is stale by the settings of the application it runs in."""

    @app.task(name=TASK, every=EVERY)
    async def enqueue_stale() -> dict[str, int]:
        """Enqueue a crawl of every source that has not run for STALE_DAYS; one that is being crawled is left alone."""
        return {"enqueued": await enqueue_stale_sources(app)}


async def enqueue_stale_sources(app: Windlass) -> int:
    """Enqueue crawls page by page, each page in a transaction; returns how many are new."""
    store = await app.store()
    before = await store.clock() - timedelta(days=app.settings.stale_days)
    new = 0
    last: Source | None = None
    while page := await store.sources.stale(before, after=last):
        new += sum(not answer.is_duplicate for answer in await store.enqueue([_crawl(source) for source in page]))
        last = page[-1]
    return new


def _crawl(source: Source) -> NewJob:
    """Describe a background crawl: the crawl queue gives those priority 0."""
    return NewJob(
        task=CRAWL,
        payload=encode_object({"source_id": source.id}),
        subject=source.id,
        unique_key=source.id,
        retry=_CRAWL_RETRY,
        created_by=TASK,
    )
