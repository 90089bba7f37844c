"""What workers have found: by collection, or by the job that found it first."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query, Request, Response

from windlass.client.job_ref import number_of
from windlass.core.access import Role
from windlass.core.ids import MAX_ID
from windlass.core.item import ItemCount
from windlass.core.job import MAX_NAME
from windlass.web.dashboard.frame import draw, now
from windlass.web.dashboard.json_tree import pretty
from windlass.web.dashboard.packs import finds_of
from windlass.web.fields import LINE
from windlass.web.items import item_out
from windlass.web.job_shape import answer_rules
from windlass.web.request_context import reader_of
from windlass.web.route import Route
from windlass.wire.jobs import ItemOut

_SIZE = 50
_COLLECTIONS = 100


async def show_items(
    request: Request,
    *,
    collection: Annotated[str | None, Query(max_length=MAX_NAME)] = None,
    job: Annotated[str | None, Query(max_length=100)] = None,
    after: Annotated[int, Query(ge=0, le=MAX_ID)] = 0,
    after_name: Annotated[str, Query(max_length=MAX_NAME, pattern=f"{LINE}|^$")] = "",
) -> Response:
    """Show the collections, or the items of one, or those of a job."""
    at = await now(request)
    items = reader_of(request).items
    values: dict[str, Any] = {"collection": collection, "job": job, "packs": await finds_of(request)}
    if not collection and not job:
        names = await items.collections(after=after_name, limit=_COLLECTIONS)
        found = [(name, await items.count(name)) for name in names]
        following = names[-1] if len(names) == _COLLECTIONS else None
        return draw(request, "items.html", at, here="/items", title="Items", collections=found, next=following, **values)
    # A job wins: that is what its own page links to.
    number = number_of(job) if job else None
    wanted = None if number is not None else collection
    rows = await items.list(job_id=number, collection=wanted, after=after, limit=_SIZE)
    rules = answer_rules(request)
    shown: list[tuple[ItemOut, int, str]] = []
    for row in rows:
        item = item_out(row, rules)
        shown.append((item, row.job_id, pretty(item.data)))
    count: ItemCount = await items.count(wanted, job_id=number)
    return draw(
        request,
        "items.html",
        at,
        here="/items",
        title="Items",
        collections=None,
        items=shown,
        count=count,
        job_number=number,
        next=rows[-1].id if len(rows) == _SIZE else None,
        **values,
    )


ROUTES = (Route("GET", "/items", Role.VIEWER, show_items, is_page=True, is_costly=True),)
