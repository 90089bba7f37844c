"""The verbs of feeds."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Protocol

from windlass.core.tally import Tally

if TYPE_CHECKING:
    # Every program that enqueues imports this file, and few have feeds.
    from windlass.core.feed import Feed, FeedEntry, Fetched, FetchRecorded, NewEntry

_DAY = timedelta(days=1)


class Feeds(Protocol):
    """Feeds, each with one job. With a `connection`, a verb belongs to the caller's transaction on it."""

    async def subscribe(self, url: str, subscriber: str, connection: Any = None) -> Feed:
        """Subscribe to a feed: its one job is made, or goes on at its next time."""
        ...

    async def unsubscribe(self, feed_id: int, subscriber: str, connection: Any = None) -> Feed:
        """End a subscription, if there is one; the last to leave disables the job. Raises FeedNotFound."""
        ...

    async def get(self, feed_id: int) -> Feed:
        """Read a feed; raises FeedNotFound."""
        ...

    async def find(self, url: str) -> Feed:
        """Read the feed of an address; raises FeedNotFound."""
        ...

    async def list(self, *, after: int = 0, limit: int = 500, subscriber: str | None = None) -> Sequence[Feed]:
        """Read feeds in the order of their numbers, page by page: all, or those that somebody follows."""
        ...

    async def count(self, *, subscriber: str | None = None) -> Tally:
        """Count them, all or those that somebody follows, up to a bound."""
        ...

    async def entries(self, feed_id: int, *, before: int = 2**63 - 1, limit: int = 500) -> Sequence[FeedEntry]:
        """Read entries, those that were found last first, page by page; raises FeedNotFound."""
        ...

    async def count_entries(self, feed_id: int) -> Tally:
        """Count the entries of a feed."""
        ...

    async def record_fetch(self, feed_id: int, token: int, fetched: Fetched) -> FetchRecorded:
        """Keep what a run has found; raises LeaseLost for a run that no longer holds the feed's job."""
        ...

    async def record_failure(self, feed_id: int, token: int, error: str, *, is_gone: bool = False) -> Feed:
        """Count a failed run, once however often its worker dies; a feed that is gone is not fetched again."""
        ...

    async def add_entries(self, feed_id: int, entries: Sequence[NewEntry]) -> int:
        """Keep what a hub has sent; returns how many are new."""
        ...

    async def ask_websub(self, feed_id: int, token: str, secret: str) -> Feed:
        """Note that a feed's hub is asked; only a feed without secrets takes these."""
        ...

    async def verify_websub(self, feed_id: int, lease: timedelta) -> Feed:
        """Note that a hub has agreed, and for how long."""
        ...

    async def deny_websub(self, feed_id: int) -> Feed:
        """Note that a hub has denied a subscription, or ended it."""
        ...

    async def expiring_websub(self, within: timedelta = _DAY, *, after: int = 0, limit: int = 500) -> Sequence[Feed]:
        """Read followed feeds whose subscription at a hub ends within this time, or has never begun, page by page."""
        ...
