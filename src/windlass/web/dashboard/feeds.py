"""The feeds that have subscribers; only where the pack `feeds` is on."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Request, Response

from windlass.core.access import Role
from windlass.core.ids import MAX_ID
from windlass.web.dashboard.frame import draw, now
from windlass.web.dashboard.packs import check_on
from windlass.web.request_context import reader_of
from windlass.web.route import Route

_SIZE = 50
_ENTRIES = 50


async def show_feeds(
    request: Request,
    feed: Annotated[int | None, Query(ge=1, le=MAX_ID)] = None,
    after: Annotated[int, Query(ge=0, le=MAX_ID)] = 0,
    before: Annotated[int, Query(ge=1, le=MAX_ID)] = MAX_ID,
) -> Response:
    """Show the feeds, or what was found in one."""
    packs = await check_on(request, "/feeds")
    at = await now(request)
    feeds = reader_of(request).feeds
    found = await feeds.list(after=after, limit=_SIZE) if feed is None else [await feeds.get(feed)]
    entries = [] if feed is None else await feeds.entries(feed, before=before, limit=_ENTRIES)
    last = found[-1].id if feed is None and len(found) == _SIZE else None
    return draw(
        request,
        "feeds.html",
        at,
        here="/items",
        title="Feeds",
        packs=packs,
        path="/feeds",
        feeds=found,
        feed=feed,
        entries=entries,
        next=last,
        older=entries[-1].id if len(entries) == _ENTRIES else None,
    )


ROUTES = (Route("GET", "/feeds", Role.VIEWER, show_feeds, is_page=True, is_costly=True),)
