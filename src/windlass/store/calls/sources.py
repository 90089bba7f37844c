"""Sources: kept by id, asked for by how long ago they ran."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from windlass.core.audit import Deed
from windlass.core.checks import check_characters, check_instant, check_range, check_text
from windlass.core.page import CappedCount
from windlass.core.payload import encode_object
from windlass.core.source import MAX_SOURCE_NAME, NewSource, Source
from windlass.errors import SourceNotFound
from windlass.store.calls.call import Call, single
from windlass.store.calls.reads import MAX_LIST, count_capped
from windlass.store.rows import SHAPES, Row, Shape

_SOURCE = Shape.of(Source)
SHAPES |= dict.fromkeys(("upsert_source", "get_source", "list_sources", "stale_sources", "delete_source"), _SOURCE)


def upsert(source: NewSource) -> Call[Source]:
    """Keep a source under its id; metadata that is not given stays."""
    params = {"source_id": source.id, "name": source.name, "url": source.url, "metadata": source.encode_metadata()}
    return single("upsert_source", params, lambda found: _sources(found)[0], deed=_was_upserted)


def get(source_id: str) -> Call[Source]:
    """Read a source; raises SourceNotFound."""
    return _one("get_source", source_id, {}, is_read=True)


def touch(source_id: str) -> Call[Source]:
    """Note that a source has run; raises SourceNotFound."""
    return _one("touch_source", source_id, {})


def delete(source_id: str) -> Call[Source]:
    """Delete a source and return it as it was; raises SourceNotFound."""
    return replace(_one("delete_source", source_id, {}), deed=_was_deleted)


def _one(query: str, source_id: str, params: dict[str, object], *, is_read: bool = False) -> Call[Source]:
    check_text("source_id", source_id, MAX_SOURCE_NAME)

    def decode(found: Sequence[Row]) -> Source:
        if not found:
            raise SourceNotFound(source_id)
        return _sources(found)[0]

    return single(query, {"source_id": source_id, **params}, decode, is_read=is_read)


def list_sources(*, after: str = "", limit: int = MAX_LIST) -> Call[list[Source]]:
    """Read sources in the order of their ids, page by page."""
    check_characters("after", after)
    check_range("limit", limit, 1, MAX_LIST)
    return single("list_sources", {"after_source": after, "limit": limit}, _sources, is_read=True)


def stale(before: datetime, *, after: Source | None = None, limit: int = MAX_LIST) -> Call[list[Source]]:
    """Read sources that have not run since `before`, page by page: those that never ran first, then the longest ago."""
    check_instant("before", before)
    check_range("limit", limit, 1, MAX_LIST)
    params = {
        "ran_before": before,
        "after_at": None if after is None else after.last_run_at,
        "after_source": "" if after is None else after.id,
        "limit": limit,
    }
    return single("stale_sources", params, _sources, is_read=True)


def count() -> Call[CappedCount]:
    """Count them, up to a bound."""
    return count_capped("count_sources")


def _sources(rows: Sequence[Row]) -> list[Source]:
    return [Source(*row) for row in rows]


def _was_upserted(source: Source) -> Deed:
    """Describe the change of a source."""
    return Deed("upsert source", f"source:{source.id}", "done", encode_object({"name": source.name, "url": source.url}))


def _was_deleted(source: Source) -> Deed:
    """Describe the deletion of a source."""
    return Deed("delete source", f"source:{source.id}", "done", encode_object({"name": source.name, "url": source.url}))
