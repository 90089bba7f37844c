"""Whole collections as text, a page at a time."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

from windlass.core.item import Item
from windlass.core.item_csv import Columns
from windlass.core.payload import encode

if TYPE_CHECKING:
    from windlass.store.nouns import Items

_PAGE = 100


class ItemFormat(StrEnum):
    """How items are written: each as JSON on a line of its own, or as the rows of a table."""

    JSONL = "jsonl"
    CSV = "csv"


class ExportRange(NamedTuple):
    """Which items: those a job found first, or those of a collection; from the one after this id on."""

    job_id: int | None = None
    collection: str | None = None
    after: int = 0


class Part(NamedTuple):
    """A piece of an export, with how many items are in it and where to go on after them."""

    text: str
    items: int = 0
    last_id: int = 0


async def export(
    items: Items, wanted: ExportRange, kind: ItemFormat, seen: Callable[[Any], Any] | None = None
) -> AsyncIterator[Part]:
    """Write items in the order they came, as `seen` shows each; holds one page in memory.

    A table's columns are known only when every item has been looked at, so the items are read twice; those that come
    meanwhile are left out.
    """
    if kind is ItemFormat.JSONL:
        async for page in _pages(items, wanted):
            text = "".join(f"{item.data_json if seen is None else encode(seen(item.data))}\n" for item in page)
            yield Part(text, len(page), page[-1].id)
        return
    columns, last_id = Columns(), 0
    async for page in _pages(items, wanted):
        for item in page:
            columns.add(item.data)
        last_id = page[-1].id
    yield Part(columns.heading())
    async for page in _pages(items, wanted, last_id):
        read = [item.data for item in page]
        yield Part(columns.rows(read if seen is None else map(seen, read)), len(page), page[-1].id)


async def _pages(items: Items, wanted: ExportRange, last_id: int | None = None) -> AsyncIterator[Sequence[Item]]:
    """Read page by page, no further than `last_id`."""
    after = wanted.after
    while last_id is None or after < last_id:
        page = await items.list(job_id=wanted.job_id, collection=wanted.collection, after=after, limit=_PAGE)
        kept = page if last_id is None else [item for item in page if item.id <= last_id]
        if not kept:
            return
        yield kept
        after = kept[-1].id
