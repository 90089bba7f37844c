"""Sources: what `crawl` crawls."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from fastapi import Path, Query, Request, Response
from pydantic import StringConstraints

from windlass.core.access import Role
from windlass.core.record import shaped
from windlass.core.source import MAX_SOURCE_NAME, Source, check_url, new_source
from windlass.web.fields import LINE, Body, Limit, Listed, SourceUrl, capped
from windlass.web.request_context import context_of, operator_of, reader_of
from windlass.web.route import Route
from windlass.wire import answer

SourceName = Annotated[str, StringConstraints(min_length=1, max_length=MAX_SOURCE_NAME, pattern=LINE)]
SourceId = Annotated[str, Path(min_length=1, max_length=MAX_SOURCE_NAME)]


class SourceIn(Body):
    """A source to keep; one with the same id is changed."""

    url: SourceUrl
    id: SourceName | None = None
    """Absent: the name, else the host of the url."""
    name: SourceName | None = None
    """Absent: the id."""
    metadata: dict[str, Any] | None = None


@answer
class SourceOut:
    """A source as it is kept."""

    id: str
    name: str
    url: str
    last_run_at: datetime | None
    metadata: dict[str, Any] | None
    created_at: datetime
    updated_at: datetime


class SourcesOut(Listed):
    """Sources by id."""

    sources: list[SourceOut]
    next: str | None
    """Send it as `after` for the next page."""


def source_out(source: Source) -> SourceOut:
    """Show a source."""
    return shaped(SourceOut, source)


async def list_sources(
    request: Request, after: Annotated[str, Query(max_length=MAX_SOURCE_NAME)] = "", limit: Limit = 100
) -> SourcesOut:
    """List the sources."""
    sources = reader_of(request).sources
    found = await sources.list(after=after, limit=capped(limit))
    counted = await sources.count()
    last = found[-1].id if len(found) == capped(limit) else None
    shown = [source_out(one) for one in found]
    return SourcesOut(sources=shown, total=counted.total, is_total_exact=counted.is_exact, next=last)


async def create_source(request: Request, response: Response, body: SourceIn) -> SourceOut:
    """Keep a source; 200 when one with this id was changed."""
    check_url("url", body.url)
    source = new_source(body.url, ("id", body.id), ("name", body.name), body.metadata)
    kept = await operator_of(request).sources.upsert(source)
    if kept.created_at != kept.updated_at:
        response.status_code = 200
    return source_out(kept)


async def get_source(request: Request, id: SourceId) -> SourceOut:  # noqa: A002 - the path's name
    """Read one source."""
    return source_out(await context_of(request).app.sources.get(id))


ROUTES = (
    Route("GET", "/api/v1/sources", Role.VIEWER, list_sources, is_costly=True),
    Route("POST", "/api/v1/sources", Role.PRODUCER, create_source, 201, others={200: SourceOut}),
    Route("GET", "/api/v1/sources/{id}", Role.VIEWER, get_source, errors=(404,)),
)
