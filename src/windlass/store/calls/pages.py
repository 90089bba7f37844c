"""Pages: kept by source and address, found by their words."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import TypeVar

from windlass.core.audit import Deed
from windlass.core.checks import check_range, check_text
from windlass.core.ids import MAX_ID
from windlass.core.page import CappedCount
from windlass.core.payload import encode_object
from windlass.core.source import MAX_SOURCE_NAME
from windlass.core.webpage import MAX_SEARCH, NewPage, WebPage, key_of, search_words
from windlass.errors import PageNotFound
from windlass.store import batches
from windlass.store.calls.call import Call, Step, Steps, single
from windlass.store.calls.reads import MAX_LIST, count_capped
from windlass.store.rows import SHAPES, Row, Shape

T = TypeVar("T")
_PAGE = Shape.of(WebPage)
SHAPES |= dict.fromkeys(("get_page", "list_pages", "list_source_pages", "search_pages"), _PAGE)


def get(page_id: int) -> Call[WebPage]:
    """Read a page with all of its text; raises PageNotFound."""

    def decode(found: Sequence[Row]) -> WebPage:
        if not found:
            raise PageNotFound(page_id)
        return WebPage(*found[0])

    is_possible = isinstance(page_id, int) and 0 < page_id <= MAX_ID
    return single("get_page", {"id": page_id if is_possible else 0}, decode, is_read=True)


def list_pages(*, source_id: str | None = None, after: int = 0, limit: int = MAX_LIST) -> Call[list[WebPage]]:
    """Read pages in the order they were found."""
    page = _checked(source_id, after, limit)
    if source_id is None:
        return single("list_pages", page, _pages, is_read=True)
    return single("list_source_pages", {"source_id": source_id, **page}, _pages, is_read=True)


def search(wanted: str, *, source_id: str | None = None, after: int = 0, limit: int = MAX_LIST) -> Call[list[WebPage]]:
    """Read the pages that have all these words, in the order they were found."""
    page = _checked(source_id, after, limit)
    words = _asked(wanted)
    if not words:
        return Call(lambda _: _nothing([]), is_read=True)
    return single("search_pages", {"words": words, "source_id": source_id, **page}, _pages, is_read=True)


def count(*, search: str | None = None, source_id: str | None = None) -> Call[CappedCount]:
    """Count all pages, those of a source or those with these words, up to a bound."""
    _checked(source_id, 0, 1)
    if search is None:
        query = "count_pages" if source_id is None else "count_source_pages"
        return count_capped(query, {} if source_id is None else {"source_id": source_id})
    words = _asked(search)
    if not words:
        return Call(lambda _: _nothing(CappedCount(0, is_exact=True)), is_read=True)
    return count_capped("count_found_pages", {"words": words, "source_id": source_id})


def _asked(wanted: str) -> str:
    """Write the words that are looked for as one text; empty when there are none."""
    check_range("search", len(wanted), 0, MAX_SEARCH)
    words = search_words(wanted)
    return batches.array(map(batches.quote, words)) if words else ""


def _nothing(answer: T) -> Steps[T]:
    """Answer without asking the database."""
    yield from ()
    return answer


def _checked(source_id: str | None, after: int, limit: int) -> dict[str, int]:
    check_range("after", after, 0, MAX_ID)
    check_range("limit", limit, 1, MAX_LIST)
    if source_id is not None:
        check_text("source_id", source_id, MAX_SOURCE_NAME)
    return {"after": after, "limit": limit}


def _pages(rows: Sequence[Row]) -> list[WebPage]:
    return [WebPage(*row) for row in rows]


def upsert(source_id: str, page: NewPage) -> Steps[bool]:
    """Keep a page; returns whether it is new or has changed."""
    place = {"source_id": source_id, "key": key_of(page.url)}
    known = yield Step("known_page", place)
    if [digest for _, digest in known] == [page.digest]:
        yield from touch(source_id, page.url, page.etag, page.last_modified)
        return False
    fields = page._asdict()
    fields |= {"links": json.dumps(page.links, ensure_ascii=False), "http_status": fields.pop("status")}
    yield Step("upsert_page", {**fields, **place})
    return True


def touch(source_id: str, url: str, etag: str | None, last_modified: str | None) -> Steps[None]:
    """Note that a page was looked at and has not changed."""
    said = {"etag": etag, "last_modified": last_modified}
    yield Step("touch_page", {"source_id": source_id, "key": key_of(url), **said})


def forget(source_id: str, url: str) -> Steps[None]:
    """Delete a page."""
    yield Step("delete_page", {"source_id": source_id, "key": key_of(url)})


def delete_some(source_id: str, limit: int) -> Call[int]:
    """Delete some pages of a source; returns how many."""
    check_text("source_id", source_id, MAX_SOURCE_NAME)
    check_range("limit", limit, 1, MAX_LIST)
    params = {"source_id": source_id, "limit": limit}
    return single("delete_pages", params, lambda found: found[0][0], deed=_was_deleted(source_id))


def _was_deleted(source_id: str) -> Callable[[int], Deed | None]:
    """Describe the deletion of pages, if there were any."""
    return lambda gone: Deed("delete pages", f"source:{source_id}", "done", encode_object({"pages": gone})) if gone else None
