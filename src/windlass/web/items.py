"""Items: what workers have found, in pages and as a whole."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Request, Response
from pydantic import BaseModel

from windlass.client.item_export import ExportRange, ItemFormat, export
from windlass.client.job_ref import number_of
from windlass.core.access import Role
from windlass.core.ids import MAX_ID, job_uuid
from windlass.core.item import Item
from windlass.core.job import MAX_NAME
from windlass.secret_names import REDACTED, redact
from windlass.store.stored_jobs import StoredJobs
from windlass.web.downloads import Download
from windlass.web.fields import LINE, Limit, Listed, capped
from windlass.web.job_shape import AnswerRules, answer_rules
from windlass.web.jobs import JobId
from windlass.web.request_context import reader_of
from windlass.web.route import Route
from windlass.wire.jobs import ItemOut

_KINDS = {ItemFormat.JSONL: "application/x-ndjson", ItemFormat.CSV: "text/csv; charset=utf-8"}
After = Annotated[int, Query(ge=0, le=MAX_ID, description="The id of the last item that is known already.")]
Collection = Annotated[str, Query(min_length=1, max_length=MAX_NAME, pattern=LINE)]
Format = Annotated[ItemFormat, Query(description="A JSON object a line, or a table with a column for every field.")]


class ItemsOut(Listed):
    """Items in the order they came."""

    items: list[ItemOut]
    next: int | None
    """Send it as `after` for the next page."""


class CollectionOut(BaseModel):
    """A collection and how many items it has."""

    name: str
    items: int
    is_exact: bool
    """Otherwise it has at least so many."""


class CollectionsOut(Listed):
    """Collections by name; `total` counts those of this page."""

    collections: list[CollectionOut]
    next: str | None
    """Send it as `after` for the next page."""


async def list_collections(
    request: Request, after: Annotated[str, Query(max_length=MAX_NAME)] = "", limit: Limit = 100
) -> CollectionsOut:
    """List the collections that have items."""
    items, most = reader_of(request).items, capped(limit)
    names = await items.collections(after=after, limit=most)
    counts = [await items.count(name) for name in names]
    found = [CollectionOut(name=name, items=one.items, is_exact=one.is_exact) for name, one in zip(names, counts, strict=True)]
    last = names[-1] if len(names) == most else None
    return CollectionsOut(collections=found, total=len(found), is_total_exact=last is None and not after, next=last)


async def list_job_items(request: Request, id: JobId, after: After = 0, limit: Limit = 100) -> ItemsOut:  # noqa: A002 - the path's name
    """List the items that a job was the first to find."""
    number = await _known(request, id)
    return await _page(request, ExportRange(job_id=number, after=after), limit)


async def list_items(request: Request, collection: Collection, after: After = 0, limit: Limit = 100) -> ItemsOut:
    """List the items of a collection; a job's collection is its task unless its enqueuer set another."""
    return await _page(request, ExportRange(collection=collection, after=after), limit)


async def export_job_items(
    request: Request,
    id: JobId,  # noqa: A002 - the path's name
    format: Format = ItemFormat.JSONL,  # noqa: A002 - the API's name
    after: After = 0,
) -> Response:
    """Write all items that a job was the first to find."""
    number = await _known(request, id)
    return await _stream(request, ExportRange(job_id=number, after=after), format)


async def export_items(
    request: Request,
    collection: Collection,
    format: Format = ItemFormat.JSONL,  # noqa: A002 - the API's name
    after: After = 0,
) -> Response:
    """Write a whole collection."""
    return await _stream(request, ExportRange(collection=collection, after=after), format)


async def _known(request: Request, ref: str) -> int:
    """Find a job's number; raises JobNotFound when there is no such job, which otherwise would seem to have found nothing."""
    number = number_of(ref)
    await StoredJobs(reader_of(request)).job_status(number)
    return number


async def _page(request: Request, wanted: ExportRange, limit: int) -> ItemsOut:
    items, most = reader_of(request).items, capped(limit)
    found = await items.list(job_id=wanted.job_id, collection=wanted.collection, after=wanted.after, limit=most)
    count = await items.count(wanted.collection, job_id=wanted.job_id)
    rules = answer_rules(request)
    return ItemsOut(
        items=[item_out(item, rules) for item in found],
        total=count.items,
        is_total_exact=count.is_exact,
        next=found[-1].id if len(found) == most else None,
    )


def item_out(item: Item, rules: AnswerRules) -> ItemOut:
    """Show an item."""
    whole = item.data
    data = rules.hide(whole)
    # The key is made of fields, and may be the one that is hidden.
    is_hidden = rules.is_viewer and data != whole
    return ItemOut(
        id=item.id,
        collection=item.collection,
        key=REDACTED if is_hidden else item.key,
        job_id=job_uuid(item.job_id),
        data=data,
        created_at=item.created_at,
    )


async def _stream(request: Request, wanted: ExportRange, kind: ItemFormat) -> Response:
    parts = export(reader_of(request).items, wanted, kind, redact if answer_rules(request).is_viewer else None)
    texts = (part.text async for part in parts)
    return Download(texts, _KINDS[kind], f"items.{kind}", is_bare=request.method == "HEAD")


_MEDIA = ("application/x-ndjson", "text/csv")
ROUTES = (
    Route("GET", "/api/v1/jobs/{id}/items", Role.VIEWER, list_job_items, errors=(404,), is_costly=True),
    Route(
        "GET",
        "/api/v1/jobs/{id}/items/export",
        Role.VIEWER,
        export_job_items,
        errors=(404,),
        kinds=_MEDIA,
        is_stream=True,
        is_costly=True,
    ),
    Route("GET", "/api/v1/items/collections", Role.VIEWER, list_collections, is_costly=True),
    Route("GET", "/api/v1/items", Role.VIEWER, list_items, is_costly=True),
    Route("GET", "/api/v1/items/export", Role.VIEWER, export_items, kinds=_MEDIA, is_stream=True, is_costly=True),
)
