"""Feeds with any number of subscribers, each fetched by one job that chooses its next run."""

from __future__ import annotations

from typing import Any

from windlass.app import Windlass
from windlass.core.feed import Feed
from windlass.packs.feeds import content, fetching, renewal
from windlass.packs.feeds.hubs import Hubs

__all__ = ["install", "subscribe", "subscribe_sync", "unsubscribe", "unsubscribe_sync"]


def install(app: Windlass) -> None:
    """Declare the tasks: `fetch_feed`, `renew_websub` with its schedule, and `websub_content`."""
    hubs = Hubs(app)
    fetching.declare(app, hubs)
    renewal.declare(app, hubs)
    content.declare(app)


async def subscribe(app: Windlass, url: str, subscriber: str, connection: Any = None) -> Feed:
    """Subscribe to a feed: its one job is made, or goes on at its next time. In the caller's transaction, if one is given."""
    return await app.feeds.subscribe(url, subscriber, connection)


def subscribe_sync(app: Windlass, url: str, subscriber: str, connection: Any = None) -> Feed:
    """Do what `subscribe` does, without an event loop."""
    return app.feeds.subscribe_sync(url, subscriber, connection)


async def unsubscribe(app: Windlass, feed: int, subscriber: str, connection: Any = None) -> Feed:
    """End a subscription, if there is one; the last to leave disables the job. Raises FeedNotFound."""
    return await app.feeds.unsubscribe(feed, subscriber, connection)


def unsubscribe_sync(app: Windlass, feed: int, subscriber: str, connection: Any = None) -> Feed:
    """Do what `unsubscribe` does, without an event loop."""
    return app.feeds.unsubscribe_sync(feed, subscriber, connection)
