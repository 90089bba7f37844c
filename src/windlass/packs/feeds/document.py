"""Reads RSS and Atom from bytes; nothing is fetched, and nothing in it is trusted."""

from __future__ import annotations

import calendar
import io
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple
from urllib.parse import urljoin

import feedparser

from windlass.core.feed import MAX_ENTRIES, NewEntry, short_guid
from windlass.core.feed_timing import feed_hint
from windlass.core.payload import sanitise_text
from windlass.core.source import check_url
from windlass.errors import InvalidInput, WindlassError

_LINE = 1_000
_SUMMARY = 10_000
_ATOM = "application/atom+xml"
_EARLIEST, _LATEST = 0, 253_402_300_799


class FeedUnreadable(WindlassError):
    """What a server sent is no feed."""


class FeedDocument(NamedTuple):
    """A feed's document; `entries` oldest first."""

    entries: list[NewEntry]
    title: str | None = None
    site_url: str | None = None
    wait: timedelta | None = None
    """How long it promises to stay as it is."""
    hub: str | None = None
    topic: str | None = None


def read_document(body: bytes, url: str, content_type: str | None = None) -> FeedDocument:
    """Read a document that came from `url`; raises FeedUnreadable. Some take hours: see `reading`."""
    _refuse_entities(body)
    # As a file: of bare bytes feedparser would first try whether they name a file, or an address. And without the address it
    # came from, on which ids that look like paths would come to depend: a feed that moves would be all new.
    headers = {"content-type": content_type or _ATOM}
    try:
        found = feedparser.parse(io.BytesIO(body), response_headers=headers)
    except Exception as error:  # the parser may raise anything for garbage
        raise FeedUnreadable(f"is not a feed: {type(error).__name__}: {error}") from error
    if not found.get("version"):
        raise FeedUnreadable(f"is neither RSS nor Atom{_why(found)}")
    feed = found.feed
    links = feed.get("links") or []
    return FeedDocument(
        entries=_entries(found.entries, url),
        title=_text(feed.get("title"), _LINE),
        site_url=_address(feed.get("link"), url),
        wait=feed_hint(feed.get("ttl"), feed.get("sy_updateperiod"), feed.get("sy_updatefrequency")),
        hub=_link(links, "hub", url),
        topic=_link(links, "self", url),
    )


def _refuse_entities(body: bytes) -> None:
    """Refuse a document that defines its own abbreviations: feeds have no use for them, and a few lines grow to gigabytes."""
    # Without the zero bytes of UTF-16, and whatever the case, as the parser of broken feeds has it.
    plain = body.replace(b"\0", b"").upper()
    if b"<!ENTITY" in plain and b"<!DOCTYPE" in plain:
        raise FeedUnreadable("defines entities of its own, which is refused")


def _why(found: Mapping[str, Any]) -> str:
    error = found.get("bozo_exception")
    return f": {sanitise_text(error, 200)}" if error is not None else ""


def _entries(found: Iterable[Mapping[str, Any]], url: str) -> list[NewEntry]:
    """Take the first of a document, where the newest are, and return the oldest of them first."""
    taken = [entry for one in list(found)[:MAX_ENTRIES] if (entry := _entry(one, url)) is not None]
    return taken[::-1]


def _entry(one: Mapping[str, Any], url: str) -> NewEntry | None:
    title = _text(one.get("title"), _LINE)
    link = _address(one.get("link"), url)
    summary = _text(one.get("summary") or _content(one), _SUMMARY)
    # Without an id or a link an entry is identified by its content.
    guid = _text(one.get("id") or one.get("link"), 10**6) or "\n".join(filter(None, (title, summary)))
    if not guid:
        return None
    return NewEntry(short_guid(guid), title, link, _text(one.get("author"), _LINE), summary, _published(one))


def _content(one: Mapping[str, Any]) -> object:
    parts = one.get("content") or [{}]
    return parts[0].get("value")


def _published(one: Mapping[str, Any]) -> datetime | None:
    # Asked first: for a missing date feedparser would return the other, with a warning.
    parsed = one.get("published_parsed") or ("updated_parsed" in one and one.get("updated_parsed"))
    try:
        seconds = calendar.timegm(parsed) if parsed else None
    except (ValueError, OverflowError, TypeError):
        return None
    if seconds is None or not _EARLIEST <= seconds <= _LATEST:
        return None
    return datetime.fromtimestamp(seconds, UTC)


def _text(value: object, limit: int) -> str | None:
    return (sanitise_text(value.strip(), limit) or None) if isinstance(value, str) else None


def _link(links: Iterable[Mapping[str, Any]], rel: str, url: str) -> str | None:
    return next((found for one in links if one.get("rel") == rel and (found := _address(one.get("href"), url))), None)


def _address(value: object, url: str) -> str | None:
    """Take an address, as it is meant at `url`; what is none is left out."""
    if not isinstance(value, str) or not value.strip():
        return None
    try:
        joined = urljoin(url, value.strip())
        check_url("link", joined)
    except (ValueError, InvalidInput):
        return None
    return joined


def header_links(header: str, url: str) -> dict[str, str]:
    """Read the hub and the feed's own address from a Link header."""
    found: dict[str, str] = {}
    for part in header[:10_000].split("<")[1:]:
        target, _, parameters = part.partition(">")
        address = _address(target, url)
        for parameter in parameters.split(";"):
            name, _, value = parameter.partition("=")
            if name.strip().lower() == "rel" and address is not None:
                for rel in value.strip(' ",').lower().split():
                    found.setdefault(rel, address)
    return found
