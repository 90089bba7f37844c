"""`fetch_feed`: one run of a feed's one job."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, NamedTuple

from windlass.app import Windlass
from windlass.core.current import current_job
from windlass.core.feed import FETCH_TASK, Feed, Fetched
from windlass.core.feed_timing import Hints, cache_hint, spread, wait_after_failure, wait_after_success
from windlass.core.http_time import retry_hint
from windlass.core.signals import Cancel, Discard, Retry
from windlass.core.source import MAX_URL
from windlass.errors import FeedNotFound, InvalidInput, WindlassError
from windlass.packs.feeds.document import FeedUnreadable, header_links
from windlass.packs.feeds.download import FeedDownload, download
from windlass.packs.feeds.hubs import Hubs
from windlass.packs.feeds.reading import read_feed
from windlass.packs.outgoing import OutgoingError, outgoing
from windlass.worker.context import JobContext

_OK, _UNCHANGED, _GONE = 200, 304, 410
_TIMEOUT = timedelta(minutes=5)


class FetchFailed(WindlassError):
    """A feed could not be had this time."""

    def __init__(self, reason: str, *, retry_after: timedelta | None = None, is_gone: bool = False) -> None:
        super().__init__(reason)
        self.retry_after = retry_after
        self.is_gone = is_gone


class FetchResult(NamedTuple):
    """What a fetch brought: what to keep, and when to come again."""

    fetched: Fetched
    wait: timedelta


def declare(app: Windlass, hubs: Hubs) -> None:
    """Declare the task."""

    @app.task(name=FETCH_TASK, timeout=_TIMEOUT)
    async def fetch_feed(ctx: JobContext, feedId: str) -> dict[str, Any]:  # noqa: N803 - the feed system's name
        """Fetch a feed, keep what is new and choose the next run; a failure backs off and never ends the job."""
        return await Fetching(app, hubs).run(ctx, feedId)


class Fetching:
    """One run."""

    def __init__(self, app: Windlass, hubs: Hubs) -> None:
        """Fetch by the settings of `app`; `hubs` gets the hubs that are found."""
        self._app = app
        self._hubs = hubs

    async def run(self, ctx: JobContext, feed_id: str) -> dict[str, Any]:
        """Fetch, record, and return when to come again; raises Retry with the wait after a failure."""
        store = await self._app.store()
        feed = await self._feed_of(ctx, feed_id)
        run = current_job()
        token = 0 if run is None else run.token
        try:
            found = await self._fetched(feed, await store.clock())
        except FetchFailed as error:
            left = await store.feeds.record_failure(feed.id, token, str(error), is_gone=error.is_gone)
            raise Retry(str(error), after=wait_after_failure(left.consecutive_failures, error.retry_after)) from error
        recorded = await store.feeds.record_fetch(feed.id, token, found.fetched)
        entries = found.fetched.entries
        ctx.items_crawled, ctx.items_indexed = len(entries or ()), recorded.new
        ctx.run_again(after=spread(found.wait, self._app.rng))
        await self._hubs.look_at(recorded.feed)
        return {"new": recorded.new, "entries": len(entries or ()), "is_changed": entries is not None}

    async def _feed_of(self, ctx: JobContext, feed_id: str) -> Feed:
        try:
            feed = await self._app.feeds.get(int(feed_id))
        except (ValueError, FeedNotFound):
            raise Discard(f"there is no feed {feed_id!r}") from None
        if feed.job_id != ctx.job_id:
            raise Cancel(f"feed {feed.id} has a job of its own; subscribe to it instead")
        return feed

    async def _fetched(self, feed: Feed, now: datetime) -> FetchResult:
        try:
            got = await download(outgoing(self._app), feed, self._app.settings.max_feed_bytes)
        except (OutgoingError, InvalidInput) as error:
            raise FetchFailed(str(error)) from error
        answer = got.answer
        retry_after = retry_hint(answer.headers, now)
        hints = Hints(cache=cache_hint(answer.headers, now), retry_after=retry_after)
        if answer.status == _UNCHANGED:
            return FetchResult(_unchanged(got), wait_after_success(hints))
        if answer.status != _OK:
            text = f"{answer.url} answered {answer.status}"
            raise FetchFailed(text, retry_after=retry_after, is_gone=answer.status == _GONE)
        return await _read(feed, got, hints)


async def _read(feed: Feed, got: FeedDownload, hints: Hints) -> FetchResult:
    answer = got.answer
    try:
        document = await read_feed(answer.body, answer.url, answer.headers.get("content-type"))
    except FeedUnreadable as error:
        raise FetchFailed(f"{answer.url} {error}", retry_after=hints.retry_after) from error
    links = header_links(answer.headers.get("link", ""), answer.url)
    hub = links.get("hub") or document.hub
    fetched = Fetched(
        entries=document.entries,
        title=document.title,
        site_url=document.site_url,
        fetch_url=_kept(got.moved_to),
        etag=answer.validator("etag"),
        last_modified=answer.validator("last-modified"),
        hub=hub,
        topic=None if hub is None else links.get("self") or document.topic or got.moved_to or feed.url,
    )
    return FetchResult(fetched, wait_after_success(hints._replace(feed=document.wait)))


def _unchanged(got: FeedDownload) -> Fetched:
    answer = got.answer
    return Fetched(fetch_url=_kept(got.moved_to), etag=answer.validator("etag"), last_modified=answer.validator("last-modified"))


def _kept(moved_to: str | None) -> str | None:
    return moved_to if moved_to is not None and len(moved_to) <= MAX_URL else None
