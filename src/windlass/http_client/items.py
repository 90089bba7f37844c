"""Items over HTTP: which are meant, a page of them, all of them."""

from __future__ import annotations

from typing import Literal

from windlass.errors import InvalidInput
from windlass.http_client.ask import API, Ask, JobRef, as_one, get, job_path
from windlass.http_client.records import ItemPage

Format = Literal["jsonl", "csv"]


def page(job: JobRef | None = None, *, collection: str | None = None, after: int = 0, limit: int = 100) -> Ask[ItemPage]:
    """Read a page of the items that a job was the first to find, or of a collection's, in the order they came."""
    query = {"collection": collection, "after": after, "limit": limit}
    return get(_path(job, collection), as_one(ItemPage), query)


def whole(job: JobRef | None = None, *, collection: str | None = None, kind: Format = "jsonl", after: int = 0) -> Ask[str]:
    """Describe an export, which is read as it comes."""
    query = {"collection": collection, "format": kind, "after": after}
    return get(f"{_path(job, collection)}/export", str, query)


def _path(job: JobRef | None, collection: str | None) -> str:
    if (job is None) == (collection is None):
        raise InvalidInput("collection", collection, "give a job or a collection, not both")
    return f"{API}/items" if job is None else job_path(job, "items")
