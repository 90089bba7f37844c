"""Bulks batch by batch: each batch is a transaction of its own, so an error leaves the batches before it done."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from windlass.core.checks import check_range
from windlass.core.filter import JobFilter
from windlass.core.ids import MAX_JOB
from windlass.core.job_verbs import Bulk, BulkPart
from windlass.store import batches
from windlass.store.calls import bulk
from windlass.store.calls.bulk import MatchingIds

if TYPE_CHECKING:
    from windlass.store.store import Store

MOST_OF_A_PART = 10_000


async def run_bulk(
    store: Store,
    verb: str,
    wanted: JobFilter,
    options: Mapping[str, Any],
    *,
    ids: Sequence[int] | None,
    dry_run: bool,
    batch: int,
    on_batch: Callable[[Bulk], object] | None,
) -> Bulk:
    """Do a verb to all that a filter matches, or to those of some jobs."""
    check_range("batch", batch, 1, batches.MAX_ROWS)
    make = bulk.maker(verb, options)
    size = min(batch, bulk.MOST_AT_ONCE.get(verb, batch))
    done = Bulk()
    async for page in _pages(store, wanted, ids):
        if dry_run:
            done = done.plus(Bulk(len(page.ids)))
            continue
        for start in range(0, len(page.ids), size):
            part = (await store.run(bulk.batch(make, wanted, page.ids[start : start + size]))).bulk
            done = done.plus(part)
            if on_batch is not None:
                on_batch(done)
    return done


async def run_part(
    store: Store,
    verb: str,
    wanted: JobFilter,
    options: Mapping[str, Any],
    *,
    ids: Sequence[int] | None,
    after: int,
    until: int | None,
    limit: int,
) -> BulkPart:
    """Do a verb to at most `limit` of the jobs that match, in the order of their numbers."""
    check_range("limit", limit, 1, MOST_OF_A_PART)
    check_range("after", after, 0, MAX_JOB)
    make = bulk.maker(verb, options)
    size = min(batches.MAX_ROWS, bulk.MOST_AT_ONCE.get(verb, limit))
    last = until if until is not None else await store.run(bulk.highest())
    done, changed, left = Bulk(), list[int](), limit
    async for page in _pages(store, wanted, ids, after=after, until=last):
        for start in range(0, len(page.ids), size):
            batch = page.ids[start : start + min(size, left)]
            answer = await store.run(bulk.batch(make, wanted, batch))
            done, left = done.plus(answer.bulk), left - len(batch)
            changed += answer.changed
            if not left:
                return BulkPart(done, tuple(changed), batch[-1], last)
    return BulkPart(done, tuple(changed), None, last)


async def _pages(
    store: Store, wanted: JobFilter, ids: Sequence[int] | None, *, after: int = 0, until: int | None = None
) -> AsyncIterator[MatchingIds]:
    """Find the jobs of a bulk, some at a time."""
    if ids is not None:
        chosen = sorted({one for one in ids if one > after})
        for start in range(0, len(chosen), batches.MAX_ROWS):
            part = chosen[start : start + batches.MAX_ROWS]
            yield MatchingIds(await store.run(bulk.matching(wanted, part)), part[-1])
        return
    last = until if until is not None else await store.run(bulk.highest())
    page = MatchingIds([], after)
    while page.end is not None:
        page = await store.run(bulk.page_ids(wanted, page.end, last))
        yield page
