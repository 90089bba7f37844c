"""Crawls: what a page brought and where the crawl goes on, in one transaction under the lease of its job."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from windlass.core.crawl import Address, CrawlState, Holder, Visit
from windlass.core.webpage import key_of
from windlass.errors import LeaseLost
from windlass.store import batches
from windlass.store.calls import pages
from windlass.store.calls.call import Call, Means, Step, Steps, single
from windlass.store.rows import SHAPES, Row, Shape

SHAPES |= {"close_address": Shape((), (0,))}


def begin(holder: Holder, url: str) -> Call[CrawlState]:
    """Start anew at an address; what an earlier crawl of this job left is forgotten. Raises LeaseLost."""

    def steps(_: Means) -> Steps[CrawlState]:
        yield from _lock(holder)
        yield Step("clear_frontier", {"job_id": holder.job_id})
        known = yield from _extend(holder.job_id, [url], depth=0, last=0, room=1)
        state = CrawlState(url, known=known)
        yield from _keep(holder, state)
        return state

    return Call(steps)


def next_address(holder: Holder) -> Call[Address | None]:
    """Return where a crawl goes on; None when it has been everywhere."""

    def decode(rows: Sequence[Row]) -> Address | None:
        return Address._make(rows[0]) if rows else None

    return single("next_address", {"job_id": holder.job_id, "source_id": holder.source_id}, decode, is_read=True)


def record(holder: Holder, state: CrawlState, visit: Visit, *, max_pages: int) -> Call[CrawlState]:
    """Keep what a visit brought and add it to the counts; raises LeaseLost, and then nothing was kept."""

    def steps(_: Means) -> Steps[CrawlState]:
        yield from _lock(holder)
        yield from _close(holder.job_id, visit.address.url)
        is_twin = yield from _is_twin(holder.job_id, visit)
        is_indexed = yield from _index(holder.source_id, visit)
        room = max(0, max_pages - state.known)
        added = yield from _extend(holder.job_id, visit.links, depth=visit.address.depth + 1, last=state.known, room=room)
        left = state.after(visit, is_indexed=is_indexed, is_twin=is_twin, added=added)
        yield from _keep(holder, left)
        return left

    return Call(steps)


def complete(holder: Holder, state: CrawlState) -> Call[CrawlState]:
    """Note that a crawl has been everywhere, and when its source was crawled last; raises LeaseLost."""

    def steps(_: Means) -> Steps[CrawlState]:
        done = state._replace(is_done=True)
        yield from _lock(holder)
        yield Step("clear_frontier", {"job_id": holder.job_id})
        yield Step("touch_source", {"source_id": holder.source_id})
        yield from _keep(holder, done)
        return done

    return Call(steps)


def _lock(holder: Holder) -> Steps[None]:
    yield Step("lock_jobs", {"ids": batches.numbers([holder.job_id])})


def _keep(holder: Holder, state: CrawlState) -> Steps[None]:
    """Write the cursor, which is also the fence: without the lease everything before it is undone."""
    said = {"count": state.crawled, "cursor": state.cursor(), "message": state.message()}
    if not (yield Step("progress", {"id": holder.job_id, "token": holder.token, **said})):
        raise LeaseLost(holder.job_id)


def _close(job_id: int, url: str) -> Steps[bool | None]:
    """Close an address; returns whether it was open, None when the crawl did not know it."""
    found = yield Step("close_address", {"job_id": job_id, "key": key_of(url)})
    return found[0][0] if found else None


def _is_twin(job_id: int, visit: Visit) -> Steps[bool]:
    """Whether a redirect led to what the crawl had visited before; if not, it need not go there again."""
    if visit.url == visit.address.url:
        return False
    was_open = yield from _close(job_id, visit.url)
    if was_open is None:
        # Under the negative number of the page with the link: it takes no room of those that may be fetched.
        yield from _extend(job_id, [visit.url], depth=visit.address.depth, last=-visit.address.number - 1, room=1)
        yield from _close(job_id, visit.url)
    return was_open is False


def _extend(job_id: int, links: Iterable[str], *, depth: int, last: int, room: int) -> Steps[int]:
    """Add addresses that the crawl does not know yet, as many as there is room for; returns how many."""
    known = {key_of(url): url for url in links}
    if not known or not room:
        return 0
    batch = batches.array(f'{{"key":"{key}","url":{batches.quote(url)}}}' for key, url in known.items())
    params = {"job_id": job_id, "links": batch, "depth": depth, "last": last, "room": room}
    [[added]] = yield Step("extend_frontier", params)
    return int(added)


def _index(source_id: str, visit: Visit) -> Steps[bool]:
    if visit.page is not None:
        return (yield from pages.upsert(source_id, visit.page))
    if visit.is_unchanged:
        yield from pages.touch(source_id, visit.url, None, None)
    elif visit.is_gone:
        yield from pages.forget(source_id, visit.url)
    return False
