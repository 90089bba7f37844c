"""Items: added under a lease, kept once in each collection."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from windlass.core.checks import check_range, check_text
from windlass.core.ids import MAX_ID, MAX_JOB
from windlass.core.item import Added, Item, ItemCount, NewItem, encode_items, key_fields, key_of
from windlass.core.job import MAX_NAME, JobState
from windlass.core.page import MOST_COUNTED
from windlass.core.report import Case
from windlass.errors import InvalidInput, JobNotFound, LeaseLost
from windlass.store import batches
from windlass.store.calls.call import Call, Means, Step, Steps, single
from windlass.store.calls.case import read_case
from windlass.store.calls.reads import MAX_LIST
from windlass.store.rows import SHAPES, Row, Shape

SHAPES |= dict.fromkeys(("list_items", "list_job_items"), Shape.of(Item))


def add(job_id: int, token: int, items: Sequence[Mapping[str, Any]]) -> Call[Added]:
    """Add what a run has found; raises LeaseLost when it is no longer ours."""
    written = encode_items(items)

    def steps(_: Means) -> Steps[Added]:
        case = yield from read_case(job_id)
        if case is None:
            raise JobNotFound(job_id)
        if case.state is not JobState.RUNNING or case.job.token != token:
            raise LeaseLost(job_id)
        added = yield from insert(case, written)
        yield Step("add_progress", progress_params(case, added))
        return added

    return Call(steps)


def insert(case: Case, items: Sequence[NewItem]) -> Steps[Added]:
    """Insert items that are new; the job's row is locked."""
    fields = key_fields(case.item_key)
    keyed: dict[str, str] = {}
    for item in items:
        # The first of those with one key is kept, as it is between calls.
        keyed.setdefault(key_of(item.value, fields), item.data)
    if not keyed:
        return Added()
    params = {
        "items": batches.array(f'{{"key":{batches.quote(key)},"data":{data}}}' for key, data in keyed.items()),
        "collection": case.collection or case.job.task,
        "job_id": case.job.id,
    }
    [[inserted]] = yield Step("insert_items", params)
    return Added(inserted, len(items) - inserted)


def progress_params(case: Case, added: Added, **given: object) -> dict[str, object]:
    """Return the parameters for the counts and progress that a report adds to its job."""
    counts = {"seen": added.added + added.duplicates, "added": added.added}
    fields = {"cursor": None, "message": None, "lease": None} | given
    return {"id": case.job.id, "token": case.job.token, **counts, **fields}


def list_items(
    *, job_id: int | None = None, collection: str | None = None, after: int = 0, limit: int = MAX_LIST
) -> Call[list[Item]]:
    """Read items in the order they came, page by page: those a job found first, or those of a collection."""
    check_range("limit", limit, 1, MAX_LIST)
    check_range("after", after, 0, MAX_ID)
    owner = _owner(job_id, collection)
    query = "list_items" if job_id is None else "list_job_items"
    return single(query, {**owner, "after": after, "limit": limit}, _items, is_read=True)


def _owner(job_id: int | None, collection: str | None) -> dict[str, object]:
    """Return the job or the collection as parameters."""
    if (job_id is None) == (collection is None):
        raise InvalidInput("collection", collection, "give a job or a collection, not both")
    if collection is None:
        check_range("job_id", job_id, 1, MAX_JOB)
        return {"job_id": job_id}
    check_text("collection", collection, MAX_NAME)
    return {"collection": collection}


def list_collections(*, after: str = "", limit: int = 100) -> Call[list[str]]:
    """Name the collections that have items, by name."""
    check_range("limit", limit, 1, MAX_LIST)
    if after:
        check_text("after", after, MAX_NAME)
    return single(
        "list_collections", {"after_name": after, "limit": limit}, lambda found: [row[0] for row in found], is_read=True
    )


def _items(rows: Sequence[Row]) -> list[Item]:
    return [Item(*row) for row in rows]


def count_items(collection: str | None = None, *, job_id: int | None = None) -> Call[ItemCount]:
    """Count the items of a collection, or those a job found first, up to a bound."""
    owner = _owner(job_id, collection)
    query = "count_items" if job_id is None else "count_job_items"
    return single(query, {**owner, "most": MOST_COUNTED + 1}, _count, is_read=True)


def _count(rows: Sequence[Row]) -> ItemCount:
    found = rows[0][0]
    return ItemCount(min(found, MOST_COUNTED), found <= MOST_COUNTED)
