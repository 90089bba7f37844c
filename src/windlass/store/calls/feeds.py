"""Feeds: subscribed to and left in the caller's transaction, fetched under the lease of their one job."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import timedelta

from windlass.core.audit import Deed
from windlass.core.checks import check_range, check_wait
from windlass.core.feed import (
    KEPT_ENTRIES,
    MAX_ENTRIES,
    Feed,
    FeedEntry,
    Fetched,
    FetchRecorded,
    NewEntry,
    check_feed_url,
    check_subscriber,
    fetch_job,
)
from windlass.core.ids import MAX_ID
from windlass.core.job import JobState
from windlass.core.outcome import ERROR_LIMIT
from windlass.core.page import CappedCount
from windlass.core.payload import encode_object, sanitise_text
from windlass.core.report import Case
from windlass.core.topic import Topic
from windlass.core.websub import DENIED_AGAIN, LONGEST_LEASE, RENEW_WITHIN
from windlass.errors import FeedNotFound, LeaseLost, StoreConflict
from windlass.store import batches
from windlass.store.calls import schedules
from windlass.store.calls.call import Call, Means, Step, Steps, single
from windlass.store.calls.case import read_case
from windlass.store.calls.reads import MAX_LIST, count_capped
from windlass.store.rows import SHAPES, Row, Shape

_FEED = Shape.of(Feed)
SHAPES |= {
    **dict.fromkeys(("find_feed", "get_feed", "list_feeds", "list_subscribed_feeds", "expiring_websub"), _FEED),
    "list_entries": Shape.of(FeedEntry),
}


def subscribe(url: str, subscriber: str) -> Call[Feed]:
    """Subscribe to a feed; its one job is made or goes on at its next time."""
    check_feed_url(url)
    check_subscriber(subscriber)

    def steps(means: Means) -> Steps[Feed]:
        yield Step("insert_feed", {"url": url})
        found = _feeds((yield Step("find_feed", {"url": url})))
        if not found:
            raise StoreConflict(f"feed {url} was made meanwhile, after this transaction's view of the database")
        feed_id = found[0].id
        # The job first, as the finish of its run does: its lock is what subscribers and leavers queue for.
        job = yield from schedules.ensure(fetch_job(feed_id)).steps(means)
        came = yield Step("upsert_subscription", {"feed_id": feed_id, "subscriber": subscriber})
        yield Step("link_feed", {"feed_id": feed_id, "job_id": job.id, "added": len(came)})
        return (yield from _read(feed_id))

    return Call(steps, wakes=_topics, deed=_was_subscribed)


def unsubscribe(feed_id: int, subscriber: str) -> Call[Feed]:
    """End a subscription, if there is one; the last to leave disables the job. Raises FeedNotFound."""
    check_subscriber(subscriber)

    def steps(_: Means) -> Steps[Feed]:
        feed = yield from _read(feed_id)
        jobs = batches.numbers([] if feed.job_id is None else [feed.job_id])
        yield Step("lock_jobs", {"ids": jobs})
        if (yield Step("end_subscription", {"feed_id": feed_id, "subscriber": subscriber})):
            yield Step("leave_feed", {"feed_id": feed_id})
        # Read after the lock, so of two that unsubscribe at once the later one sees that none is left.
        if not (yield from _read(feed_id)).subscribers:
            yield Step("disable", {"ids": jobs})
        return (yield from _read(feed_id))

    return Call(steps, deed=_was_unsubscribed)


def get(feed_id: int) -> Call[Feed]:
    """Read a feed; raises FeedNotFound."""
    return Call(lambda _: _read(feed_id), is_read=True)


def find(url: str) -> Call[Feed]:
    """Read the feed of an address; raises FeedNotFound."""
    check_feed_url(url)

    def decode(rows: Sequence[Row]) -> Feed:
        if not rows:
            raise FeedNotFound(url)
        return _feeds(rows)[0]

    return single("find_feed", {"url": url}, decode, is_read=True)


def list_feeds(*, after: int = 0, limit: int = MAX_LIST, subscriber: str | None = None) -> Call[list[Feed]]:
    """Read feeds in the order of their numbers, page by page."""
    check_range("after", after, 0, MAX_ID)
    check_range("limit", limit, 1, MAX_LIST)
    params: dict[str, object] = {"after": after, "limit": limit}
    if subscriber is None:
        return single("list_feeds", params, _feeds, is_read=True)
    check_subscriber(subscriber)
    return single("list_subscribed_feeds", {**params, "subscriber": subscriber}, _feeds, is_read=True)


def count_feeds(*, subscriber: str | None = None) -> Call[CappedCount]:
    """Count the feeds, or those of one subscriber, up to a bound."""
    if subscriber is None:
        return count_capped("count_feeds")
    check_subscriber(subscriber)
    return count_capped("count_subscribed_feeds", {"subscriber": subscriber})


def list_entries(feed_id: int, *, before: int = MAX_ID, limit: int = MAX_LIST) -> Call[list[FeedEntry]]:
    """Read entries of a feed, those that were found last first, page by page; raises FeedNotFound."""
    check_range("before", before, 1, MAX_ID)
    check_range("limit", limit, 1, MAX_LIST)

    def steps(_: Means) -> Steps[list[FeedEntry]]:
        yield from _read(feed_id)
        rows = yield Step("list_entries", {"feed_id": feed_id, "before": before, "limit": limit})
        return [FeedEntry(*row) for row in rows]

    return Call(steps, is_read=True)


def count_entries(feed_id: int) -> Call[CappedCount]:
    """Count the entries of a feed."""
    return count_capped("count_entries", {"feed_id": feed_id})


def record_fetch(feed_id: int, token: int, fetched: Fetched) -> Call[FetchRecorded]:
    """Keep what a run has found; raises LeaseLost for a run that no longer holds the feed's job."""

    def steps(_: Means) -> Steps[FetchRecorded]:
        case = yield from _held(feed_id, token)
        new = 0 if fetched.entries is None else (yield from _keep(feed_id, fetched.entries))
        params = {
            "feed_id": feed_id,
            "is_changed": fetched.entries is not None,
            "slot_at": case.job.slot_at,
            "title": fetched.title,
            "site_url": fetched.site_url,
            "fetch_url": fetched.fetch_url,
            "etag": fetched.etag,
            "last_modified": fetched.last_modified,
            "hub": fetched.hub,
            "topic": fetched.topic,
        }
        yield Step("record_fetch", params)
        return FetchRecorded((yield from _read(feed_id)), new)

    return Call(steps)


def record_failure(feed_id: int, token: int, error: str, *, is_gone: bool = False) -> Call[Feed]:
    """Count a failed run, once however often its worker dies; a feed that is gone is not fetched again. Raises LeaseLost."""

    def steps(_: Means) -> Steps[Feed]:
        case = yield from _held(feed_id, token)
        params = {"feed_id": feed_id, "slot_at": case.job.slot_at, "error": sanitise_text(error, ERROR_LIMIT), "is_gone": is_gone}
        yield Step("record_failure", {**params})
        if is_gone:
            yield Step("disable", {"ids": batches.numbers([case.job.id])})
        return (yield from _read(feed_id))

    return Call(steps)


def add_entries(feed_id: int, entries: Sequence[NewEntry]) -> Call[int]:
    """Keep what a hub has sent; returns how many are new. Raises FeedNotFound."""

    def steps(_: Means) -> Steps[int]:
        feed = yield from _read(feed_id)
        # A run of the job may be writing the same entries, in another order.
        yield Step("lock_jobs", {"ids": batches.numbers([] if feed.job_id is None else [feed.job_id])})
        return (yield from _keep(feed_id, entries))

    return Call(steps)


def ask_websub(feed_id: int, token: str, secret: str) -> Call[Feed]:
    """Note that a feed's hub is asked; what was agreed before stays, and only a feed without secrets takes these."""
    return _changed("ask_websub", feed_id, {"token": token, "secret": secret})


def verify_websub(feed_id: int, lease: timedelta) -> Call[Feed]:
    """Note that a hub has agreed, and for how long."""
    check_wait("lease", lease, least=timedelta())
    return _changed("verify_websub", feed_id, {"lease": min(lease, LONGEST_LEASE)})


def deny_websub(feed_id: int) -> Call[Feed]:
    """Note that a hub has denied a subscription, or ended it."""
    return _changed("deny_websub", feed_id, {})


def expiring_websub(within: timedelta = RENEW_WITHIN, *, after: int = 0, limit: int = MAX_LIST) -> Call[list[Feed]]:
    """Read followed feeds whose subscription at a hub ends within this time, or has never begun, page by page."""
    check_wait("within", within, least=timedelta())
    check_range("limit", limit, 1, MAX_LIST)
    params = {"within": within, "again": DENIED_AGAIN, "after": after, "limit": limit}
    return single("expiring_websub", params, _feeds, is_read=True)


def _changed(query: str, feed_id: int, params: dict[str, object]) -> Call[Feed]:
    def steps(_: Means) -> Steps[Feed]:
        feed = yield from _read(feed_id)
        yield Step(query, {"feed_id": feed.id, **params})
        return (yield from _read(feed_id))

    return Call(steps)


def _held(feed_id: int, token: int) -> Steps[Case]:
    """Lock the feed's job and see that the caller's run still holds it."""
    feed = yield from _read(feed_id)
    case = None if feed.job_id is None else (yield from read_case(feed.job_id))
    if case is None or case.state is not JobState.RUNNING or case.job.token != token:
        raise LeaseLost(feed.job_id or 0)
    return case


def _keep(feed_id: int, entries: Sequence[NewEntry]) -> Steps[int]:
    check_range("entries", len(entries), 0, MAX_ENTRIES)
    # Of several with one guid the last one counts; one statement cannot change a row twice.
    written = batches.array(map(_document, {entry.guid: entry for entry in entries}.values()))
    params = {"feed_id": feed_id, "entries": written}
    # Changed before added: what is added just now cannot have changed.
    yield Step("update_entries", params)
    [[new]] = yield Step("insert_entries", params)
    if new:
        yield Step("trim_entries", {"feed_id": feed_id, "most": KEPT_ENTRIES})
    return int(new)


def _document(entry: NewEntry) -> str:
    said = {name: value for name, value in entry._asdict().items() if value is not None and name != "published_at"}
    if entry.published_at is not None:
        said["published_us"] = batches.microseconds(entry.published_at)
    return encode_object(said, field="entry")


def _read(feed_id: int) -> Steps[Feed]:
    if 0 < feed_id <= MAX_ID:
        for feed in _feeds((yield Step("get_feed", {"feed_id": feed_id}))):
            return feed
    raise FeedNotFound(feed_id)


def _feeds(rows: Sequence[Row]) -> list[Feed]:
    return [Feed(*row) for row in rows]


def _topics(_feed: Feed) -> Collection[Topic]:
    # A new job is due at once; one that goes on may have been due for long.
    return {Topic.WORK, Topic.DUE}


def _was_subscribed(feed: Feed) -> Deed:
    """Describe the start of a subscription."""
    return Deed("subscribe to feed", f"feed:{feed.id}", "done", encode_object({"url": feed.url}))


def _was_unsubscribed(feed: Feed) -> Deed:
    """Describe the end of a subscription."""
    return Deed("unsubscribe from feed", f"feed:{feed.id}", "done", encode_object({"url": feed.url}))
