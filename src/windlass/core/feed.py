"""Feeds: their subscribers, their entries, and the one job that each of them has."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import field
from datetime import datetime, timedelta
from typing import NamedTuple

from windlass.core.cadence import ByHandler, Recurrence
from windlass.core.job import NewJob
from windlass.core.payload import encode_object
from windlass.core.record import record
from windlass.core.retry import RetryPolicy, RetrySpec
from windlass.core.source import MAX_URL, check_line, check_url
from windlass.errors import InvalidInput

FETCH_TASK = "fetch_feed"
CONTENT_TASK = "websub_content"
MAX_SUBSCRIBER = 255
MAX_ENTRIES = 500
"""How many entries of one document count; a feed keeps the newest `KEPT_ENTRIES`."""
KEPT_ENTRIES = 2_000
MAX_GUID = 500
DEFAULT_WAIT = timedelta(minutes=60)
LONGEST_WAIT = timedelta(days=7)
BACKOFF = RetryPolicy(base=DEFAULT_WAIT, cap=LONGEST_WAIT)
_RETRY = RetrySpec(base=DEFAULT_WAIT, cap=LONGEST_WAIT, jitter=0.0)


@record
class Feed:
    """A feed as it is kept."""

    id: int
    url: str
    """What subscribers asked for; never changes."""
    fetch_url: str | None
    """Where a permanent move leads."""
    title: str | None
    site_url: str | None
    etag: str | None
    last_modified: str | None
    job_id: int | None
    next_fetch_at: datetime | None
    """The next run of its job; None while that is disabled."""
    last_fetched_at: datetime | None
    consecutive_failures: int
    last_error: str | None
    gone_at: datetime | None
    """When its server answered that it is gone for good; a new subscription tries again."""
    subscribers: int
    websub_hub: str | None
    websub_topic: str | None
    websub_state: str | None
    """pending, active or denied."""
    websub_token: str | None = field(repr=False)
    """What makes the address of its hub callback unguessable."""
    websub_secret: str | None = field(repr=False)
    """What the hub signs content with."""
    websub_asked_at: datetime | None
    websub_expires_at: datetime | None
    created_at: datetime
    updated_at: datetime


@record
class FeedEntry:
    """An entry as it is kept. Texts are the publisher's own: escape them wherever they are shown."""

    id: int
    feed_id: int
    guid: str
    title: str | None
    link: str | None
    author: str | None
    summary: str | None
    published_at: datetime | None
    created_at: datetime
    updated_at: datetime


class NewEntry(NamedTuple):
    """An entry as a document has it, already bounded."""

    guid: str
    title: str | None = None
    link: str | None = None
    author: str | None = None
    summary: str | None = None
    published_at: datetime | None = None


class Fetched(NamedTuple):
    """What a fetch that went well has found; `entries` oldest first, None when nothing has changed."""

    entries: Sequence[NewEntry] | None = None
    title: str | None = None
    site_url: str | None = None
    fetch_url: str | None = None
    etag: str | None = None
    last_modified: str | None = None
    hub: str | None = None
    topic: str | None = None


class FetchRecorded(NamedTuple):
    """What a fetch has left: the feed, and how many entries are new."""

    feed: Feed
    new: int


def check_feed_url(url: str) -> None:
    """Refuse what is no web address, or too long to be unique in both databases."""
    check_url("url", url)
    if len(url.encode()) > MAX_URL:
        raise InvalidInput("url", url, f"must not be longer than {MAX_URL} bytes")


def check_subscriber(subscriber: str) -> None:
    """Refuse a name that could not be shown."""
    check_line("subscriber", subscriber, MAX_SUBSCRIBER)


def job_name(feed_id: int) -> str:
    """Name the job of a feed."""
    return f"{FETCH_TASK}:{feed_id}"


def fetch_job(feed_id: int) -> NewJob:
    """Describe the job of a feed; its handler chooses each next run, and what the handler cannot count backs off alike."""
    return NewJob(
        task=FETCH_TASK,
        payload=encode_object({"feedId": str(feed_id)}),
        name=job_name(feed_id),
        subject=str(feed_id),
        recurrence=Recurrence(cadence=ByHandler(DEFAULT_WAIT)),
        retry=_RETRY,
    )


def short_guid(guid: str) -> str:
    """Return what distinguishes an entry from others of its feed in a length that an index takes."""
    return guid if len(guid.encode()) <= MAX_GUID else f"sha256:{hashlib.sha256(guid.encode()).hexdigest()}"
