"""Gets a feed's document through the guard, noting whether it has moved for good."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import NamedTuple

from windlass.core.feed import Feed
from windlass.packs.outgoing import Answer, Limits, Outgoing, TooManyRedirects, Unreachable, is_validator, parse_url
from windlass.packs.outgoing.url import join_url

LIMITS = Limits()
_PERMANENT = frozenset({301, 308})
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_ACCEPT = "application/atom+xml, application/rss+xml, application/rdf+xml;q=0.9, application/xml;q=0.8, text/xml;q=0.8, */*;q=0.1"


class FeedDownload(NamedTuple):
    """An answer, and the address that only permanent moves led to; None where that is the feed's own."""

    answer: Answer
    moved_to: str | None


async def download(sender: Outgoing, feed: Feed, max_bytes: int) -> FeedDownload:
    """Ask for a feed, if it has changed; all moves together have the time of one request. Raises OutgoingError."""
    try:
        async with asyncio.timeout(LIMITS.total_s):
            return await _follow(sender, feed, LIMITS._replace(max_bytes=max_bytes))
    except TimeoutError:
        raise Unreachable(f"{feed.fetch_url or feed.url}: no whole answer within {LIMITS.total_s:g} s") from None


async def _follow(sender: Outgoing, feed: Feed, limits: Limits) -> FeedDownload:
    url = lasting = feed.fetch_url or feed.url
    is_permanent = True
    headers = _headers(feed)
    for _ in range(limits.max_redirects + 1):
        # Followed here and not by the guard, which cannot distinguish moves and detours; it looks at each address all the same.
        answer = await sender.send("GET", url, headers=headers, limits=limits, follow=False)
        location = answer.headers.get("location")
        if answer.status not in _REDIRECTS or not location:
            return FeedDownload(answer, None if lasting == feed.url else lasting)
        is_permanent = is_permanent and answer.status in _PERMANENT
        url = str(join_url(parse_url(url), location))
        lasting = url if is_permanent else lasting
    raise TooManyRedirects(f"{url}: still redirected after {limits.max_redirects} times")


def _headers(feed: Feed) -> Mapping[str, str]:
    known = {"if-none-match": feed.etag, "if-modified-since": feed.last_modified}
    return {"accept": _ACCEPT, **{name: value for name, value in known.items() if value and is_validator(value)}}
