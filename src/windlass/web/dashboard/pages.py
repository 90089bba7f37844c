"""What crawls have kept; only where the pack `crawl` is on."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Request, Response

from windlass.core.access import Role
from windlass.core.ids import MAX_ID
from windlass.core.source import MAX_SOURCE_NAME
from windlass.core.webpage import MAX_SEARCH
from windlass.web.dashboard.frame import draw, now
from windlass.web.dashboard.packs import check_on
from windlass.web.request_context import reader_of
from windlass.web.route import Route

_SIZE = 50


async def show_pages(
    request: Request,
    search: Annotated[str | None, Query(max_length=MAX_SEARCH)] = None,
    source: Annotated[str | None, Query(max_length=MAX_SOURCE_NAME)] = None,
    after: Annotated[int, Query(ge=0, le=MAX_ID)] = 0,
) -> Response:
    """Show the pages that were crawled, or those with some words."""
    packs = await check_on(request, "/pages")
    at = await now(request)
    pages = reader_of(request).pages
    if search:
        found = await pages.search(search, source_id=source or None, after=after, limit=_SIZE)
    else:
        found = await pages.list(source_id=source or None, after=after, limit=_SIZE)
    return draw(
        request,
        "pages.html",
        at,
        here="/items",
        title="Pages",
        packs=packs,
        path="/pages",
        pages=found,
        count=await pages.count(search=search or None, source_id=source or None),
        search=search,
        source=source,
        next=found[-1].id if len(found) == _SIZE else None,
    )


ROUTES = (Route("GET", "/pages", Role.VIEWER, show_pages, is_page=True, is_costly=True),)
