"""The feeds of a store."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from random import Random
from typing import Any, TypeVar

from windlass.core.audit import Actor
from windlass.core.feed import Feed, FeedEntry, Fetched, FetchRecorded, NewEntry
from windlass.core.ids import MAX_ID
from windlass.core.tally import Tally
from windlass.core.websub import RENEW_WITHIN
from windlass.store.calls import feeds, tally
from windlass.store.calls.audit import audited
from windlass.store.calls.call import Call
from windlass.store.calls.reads import MAX_LIST
from windlass.store.database import Database, run_in

T = TypeVar("T")


class SqlFeeds:
    """Feeds, each with one job. With a `connection`, a verb belongs to the caller's transaction on it."""

    def __init__(self, database: Database, rng: Random, actor: Actor | None = None) -> None:
        """Speak to `database`; `actor` is whom the audit log names."""
        self._db = database
        self._rng = rng
        self._actor = actor

    async def _run(self, call: Call[T], connection: Any = None) -> T:
        return await run_in(self._db, call, connection)

    async def subscribe(self, url: str, subscriber: str, connection: Any = None) -> Feed:
        """Subscribe to a feed: its one job is made, or goes on at its next time."""
        call = feeds.subscribe(url, subscriber, self._rng)
        return await self._run(audited(call, self._actor, feeds.was_subscribed), connection)

    async def unsubscribe(self, feed_id: int, subscriber: str, connection: Any = None) -> Feed:
        """End a subscription, if there is one; the last to leave disables the job. Raises FeedNotFound."""
        call = feeds.unsubscribe(feed_id, subscriber)
        return await self._run(audited(call, self._actor, feeds.was_unsubscribed), connection)

    async def get(self, feed_id: int) -> Feed:
        """Read a feed; raises FeedNotFound."""
        return await self._db.run(feeds.get(feed_id))

    async def find(self, url: str) -> Feed:
        """Read the feed of an address; raises FeedNotFound."""
        return await self._db.run(feeds.find(url))

    async def list(self, *, after: int = 0, limit: int = MAX_LIST, subscriber: str | None = None) -> Sequence[Feed]:
        """Read feeds in the order of their numbers, page by page: all, or those that somebody follows."""
        return await self._db.run(feeds.list_feeds(after, limit, subscriber))

    async def count(self, *, subscriber: str | None = None) -> Tally:
        """Count them, all or those that somebody follows, up to a bound."""
        return await self._db.run(feeds.count_feeds(subscriber))

    async def entries(self, feed_id: int, *, before: int = MAX_ID, limit: int = MAX_LIST) -> Sequence[FeedEntry]:
        """Read entries, those that were found last first, page by page; raises FeedNotFound."""
        return await self._db.run(feeds.list_entries(feed_id, before, limit))

    async def count_entries(self, feed_id: int) -> Tally:
        """Count the entries of a feed."""
        return await self._db.run(tally.count("count_entries", {"feed_id": feed_id}))

    async def record_fetch(self, feed_id: int, token: int, fetched: Fetched) -> FetchRecorded:
        """Keep what a run has found; raises LeaseLost for a run that no longer holds the feed's job."""
        return await self._db.run(feeds.record_fetch(feed_id, token, fetched))

    async def record_failure(self, feed_id: int, token: int, error: str, *, is_gone: bool = False) -> Feed:
        """Count a failed run, once however often its worker dies; a feed that is gone is not fetched again."""
        return await self._db.run(feeds.record_failure(feed_id, token, error, is_gone=is_gone))

    async def add_entries(self, feed_id: int, entries: Sequence[NewEntry]) -> int:
        """Keep what a hub has sent; returns how many are new."""
        return await self._db.run(feeds.add_entries(feed_id, entries))

    async def ask_websub(self, feed_id: int, token: str, secret: str) -> Feed:
        """Note that a feed's hub is asked; only a feed without secrets takes these."""
        return await self._db.run(feeds.ask_websub(feed_id, token, secret))

    async def verify_websub(self, feed_id: int, lease: timedelta) -> Feed:
        """Note that a hub has agreed, and for how long."""
        return await self._db.run(feeds.verify_websub(feed_id, lease))

    async def deny_websub(self, feed_id: int) -> Feed:
        """Note that a hub has denied a subscription, or ended it."""
        return await self._db.run(feeds.deny_websub(feed_id))

    async def expiring_websub(self, within: timedelta = RENEW_WITHIN, *, after: int = 0, limit: int = MAX_LIST) -> Sequence[Feed]:
        """Read followed feeds whose subscription at a hub ends within this time, or has never begun, page by page."""
        return await self._db.run(feeds.expiring_websub(within, after, limit))
