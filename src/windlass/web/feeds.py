"""Feeds: their subscribers and their entries."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import Path, Query, Request, Response
from pydantic import StringConstraints

from windlass.core.access import Role
from windlass.core.feed import MAX_SUBSCRIBER
from windlass.core.ids import MAX_ID
from windlass.core.record import shaped
from windlass.store.nouns import NOT_FETCHED
from windlass.web.fields import LINE, Body, Limit, Listed, SourceUrl, capped
from windlass.web.request_context import context_of, operator_of, reader_of
from windlass.web.route import Route
from windlass.wire import answer

FeedId = Annotated[int, Path(ge=1, le=MAX_ID)]
SubscriberName = Annotated[str, StringConstraints(min_length=1, max_length=MAX_SUBSCRIBER, pattern=LINE)]


class SubscriptionIn(Body):
    """A subscription; the same one again changes nothing."""

    url: SourceUrl
    subscriber: SubscriberName


@answer
class FeedOut:
    """A feed, without the secrets it shares with its hub."""

    id: int
    url: str
    fetch_url: str | None
    """Where it has moved for good."""
    title: str | None
    site_url: str | None
    job_id: int | None
    next_fetch_at: datetime | None
    """Null while there is no subscriber, or when it is gone."""
    last_fetched_at: datetime | None
    consecutive_failures: int
    last_error: str | None
    gone_at: datetime | None
    subscribers: int
    websub_hub: str | None
    websub_state: str | None
    websub_expires_at: datetime | None
    created_at: datetime
    updated_at: datetime


@answer
class SubscribedOut(FeedOut):
    """A feed that was subscribed to."""

    warning: str | None = None
    """Why it may not be fetched, such as that no worker has the pack."""


class FeedsOut(Listed):
    """Feeds by number."""

    feeds: list[FeedOut]
    next: int | None
    """Send it as `after` for the next page."""


@answer
class EntryOut:
    """An entry. Its texts are the publisher's own: escape them wherever they are shown."""

    id: int
    guid: str
    title: str | None
    link: str | None
    author: str | None
    summary: str | None
    published_at: datetime | None
    created_at: datetime
    updated_at: datetime


class EntriesOut(Listed):
    """Entries, those that were found last first."""

    entries: list[EntryOut]
    next: int | None
    """Send it as `before` for the next page."""


async def list_feeds(
    request: Request,
    after: Annotated[int, Query(ge=0, le=MAX_ID)] = 0,
    subscriber: Annotated[str | None, Query(min_length=1, max_length=MAX_SUBSCRIBER, pattern=LINE)] = None,
    limit: Limit = 100,
) -> FeedsOut:
    """List the feeds: all, or those of a subscriber."""
    feeds = reader_of(request).feeds
    found = await feeds.list(after=after, limit=capped(limit), subscriber=subscriber)
    counted = await feeds.count(subscriber=subscriber)
    last = found[-1].id if len(found) == capped(limit) else None
    shown = [shaped(FeedOut, one) for one in found]
    return FeedsOut(feeds=shown, total=counted.total, is_total_exact=counted.is_exact, next=last)


async def subscribe_to_feed(request: Request, response: Response, body: SubscriptionIn) -> SubscribedOut:
    """Subscribe to a feed; 200 when it was known."""
    feeds = operator_of(request).feeds
    kept = await feeds.subscribe(body.url, body.subscriber)
    if kept.created_at != kept.updated_at:
        response.status_code = 200
    warning = None if await feeds.are_fetched() else NOT_FETCHED
    return shaped(SubscribedOut, kept, warning=warning)


async def get_feed(request: Request, id: FeedId) -> FeedOut:  # noqa: A002 - the path's name
    """Read one feed."""
    return shaped(FeedOut, await context_of(request).app.feeds.get(id))


async def unsubscribe_from_feed(
    request: Request,
    id: FeedId,  # noqa: A002 - the path's name
    subscriber: Annotated[str, Path(min_length=1, max_length=MAX_SUBSCRIBER)],
) -> FeedOut:
    """End a subscription, if there is one; the last to leave stops the fetching."""
    return shaped(FeedOut, await operator_of(request).feeds.unsubscribe(id, subscriber))


async def list_feed_entries(
    request: Request,
    id: FeedId,  # noqa: A002 - the path's name
    before: Annotated[int, Query(ge=1, le=MAX_ID)] = MAX_ID,
    limit: Limit = 100,
) -> EntriesOut:
    """List what was found in a feed."""
    feeds = reader_of(request).feeds
    found = await feeds.entries(id, before=before, limit=capped(limit))
    counted = await feeds.count_entries(id)
    last = found[-1].id if len(found) == capped(limit) else None
    shown = [shaped(EntryOut, one) for one in found]
    return EntriesOut(entries=shown, total=counted.total, is_total_exact=counted.is_exact, next=last)


ROUTES = (
    Route("GET", "/api/v1/feeds", Role.VIEWER, list_feeds, is_costly=True),
    Route("POST", "/api/v1/feeds", Role.PRODUCER, subscribe_to_feed, 201, others={200: SubscribedOut}, errors=(409,)),
    Route("GET", "/api/v1/feeds/{id}", Role.VIEWER, get_feed, errors=(404,)),
    Route("GET", "/api/v1/feeds/{id}/entries", Role.VIEWER, list_feed_entries, errors=(404,), is_costly=True),
    Route("DELETE", "/api/v1/feeds/{id}/subscribers/{subscriber}", Role.PRODUCER, unsubscribe_from_feed, errors=(404,)),
)
