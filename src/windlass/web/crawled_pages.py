"""Pages: what crawls have found."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Query, Request

from windlass.core.access import Role
from windlass.core.ids import MAX_ID
from windlass.core.record import record, shaped
from windlass.core.source import MAX_SOURCE_NAME
from windlass.core.webpage import MAX_SEARCH, WebPage
from windlass.web.fields import Limit, Listed, capped
from windlass.web.request_context import context_of, reader_of
from windlass.web.route import Route

Search = Annotated[
    str | None,
    Query(
        max_length=MAX_SEARCH, description="Words that a page must all have; `word*` is any that begins so. Nothing else counts."
    ),
]
SourceFilter = Annotated[str | None, Query(min_length=1, max_length=MAX_SOURCE_NAME, pattern=r"^[^\x00]+$")]
After = Annotated[int, Query(ge=0, le=MAX_ID, description="The `next` of the page before.")]


@record
class PageOut(WebPage):
    """A page as it is kept; in lists `text` is only its beginning."""


class PagesOut(Listed):
    """Pages in the order they were found."""

    pages: list[PageOut]
    next: int | None
    """Send it as `after` for the next part."""


async def list_pages(  # noqa: PLR0917 - the query of the route
    request: Request, search: Search = None, source_id: SourceFilter = None, after: After = 0, limit: Limit = 100
) -> PagesOut:
    """List the pages that crawls have found, or search them for words."""
    pages = reader_of(request).pages
    most = capped(limit)
    if search is None:
        found = await pages.list(source_id=source_id, after=after, limit=most)
    else:
        found = await pages.search(search, source_id=source_id, after=after, limit=most)
    counted = await pages.count(search=search, source_id=source_id)
    last = found[-1].id if len(found) == most else None
    return PagesOut(
        pages=[shaped(PageOut, one) for one in found], total=counted.total, is_total_exact=counted.is_exact, next=last
    )


async def get_page(request: Request, id: Annotated[int, Path(ge=1, le=MAX_ID)]) -> PageOut:  # noqa: A002 - the path's name
    """Read one page with all of its text."""
    return shaped(PageOut, await context_of(request).app.pages.get(id))


ROUTES = (
    Route("GET", "/api/v1/pages", Role.VIEWER, list_pages, is_costly=True),
    Route("GET", "/api/v1/pages/{id}", Role.VIEWER, get_page, errors=(404,)),
)
