"""A crawl's pages, counts and cursor change together, and only under the lease of its job."""

from __future__ import annotations

import asyncio

import pytest

from tests.store.builders import a_job, claim_one, due, end, failure, recurring, running
from tests.store.test_pages import a_page
from tests.support.raw import execute
from windlass.core.crawl import MAX_NOTES, Address, CrawlState, Holder, Visit
from windlass.core.job import Claimed
from windlass.core.source import NewSource
from windlass.errors import LeaseLost
from windlass.store import Store
from windlass.store.calls.work import MAX_CURSOR
from windlass.testing import FakeClock

HOME = "https://e.org/"


def held(job: Claimed) -> Holder:
    return Holder(job.id, job.token, "s")


async def visited(
    store: Store, job: Claimed, state: CrawlState, *links: str, max_pages: int = 100, url: str | None = None
) -> CrawlState:
    address = await store.crawls.next(held(job))
    assert address is not None
    visit = Visit(address, url or address.url, page=a_page(url or address.url, text=url or address.url), links=links)
    return await store.crawls.record(held(job), state, visit, max_pages=max_pages)


async def left(store: Store) -> list[tuple[int, str]]:
    rows = await execute(store, "select number, url from windlass_frontier where is_open order by number")
    return [(number, url.removeprefix(HOME)) for number, url in rows]


async def crawling(store: Store) -> tuple[Claimed, CrawlState]:
    job = await running(store, a_job("crawl", max_attempts=5))
    return job, await store.crawls.begin(held(job), HOME)


async def test_a_crawl_goes_through_what_it_finds_in_order_each_once(store: Store) -> None:
    job, state = await crawling(store)
    state = await visited(store, job, state, HOME + "a", HOME + "b", HOME + "a", HOME)
    state = await visited(store, job, state, HOME + "c", HOME + "b")
    assert await left(store) == [(3, "b"), (4, "c")]
    assert await store.crawls.next(held(job)) == Address(3, HOME + "b", 1)
    assert (state.known, state.crawled, state.indexed) == (4, 2, 2)
    row = await store.get(job.id)
    assert CrawlState.read(row.last_cursor, HOME) == state
    assert (row.progress_count, row.progress_message) == (2, "2 crawled, 2 indexed, 0 errors, 0 skipped")


async def test_it_never_knows_more_addresses_than_it_may_ask_for(store: Store) -> None:
    job, state = await crawling(store)
    state = await visited(store, job, state, *(f"{HOME}{n}" for n in range(10)), max_pages=4)
    state = await visited(store, job, state, HOME + "0", HOME + "new", max_pages=4)
    assert (state.known, await left(store)) == (4, [(3, "1"), (4, "2")])


async def test_a_redirect_is_not_crawled_again_and_a_twin_does_not_count(store: Store) -> None:
    job, state = await crawling(store)
    state = await visited(store, job, state, HOME + "old", HOME + "new", HOME + "old2", url=HOME + "home")
    state = await visited(store, job, state, HOME + "home", url=HOME + "new")
    state = await visited(store, job, state, url=HOME + "new")
    assert (state.known, state.crawled, state.indexed, state.skipped) == (4, 2, 2, 1)
    assert await left(store) == []


async def test_without_the_lease_nothing_is_kept(store: Store) -> None:
    job, state = await crawling(store)
    before = await store.get(job.id)
    late = job._replace(token=job.token + 1)
    with pytest.raises(LeaseLost):
        await visited(store, late, state, HOME + "a")
    with pytest.raises(LeaseLost):
        await store.crawls.begin(held(late), HOME + "other")
    with pytest.raises(LeaseLost):
        await store.crawls.complete(held(late), state)
    assert await store.pages.list() == []
    assert await left(store) == [(1, "")]
    assert await store.get(job.id) == before


async def test_of_two_that_record_the_same_page_both_are_fenced(stores: list[Store], store: Store) -> None:
    job, state = await crawling(store)
    late = job._replace(token=job.token + 1)
    answers = await asyncio.gather(
        *(visited(one, job if place == 2 else late, state, HOME + "a") for place, one in enumerate(stores)),
        return_exceptions=True,
    )
    assert [type(one) for one in answers].count(LeaseLost) == 4
    assert (await left(store), len(await store.pages.list())) == ([(2, "a")], 1)


async def test_the_next_run_goes_on_where_the_last_one_was(store: Store, clock: FakeClock) -> None:
    job, state = await crawling(store)
    state = await visited(store, job, state, HOME + "a", HOME + "b")
    await end(store, clock, job, failure())
    clock.advance(hours=1)
    await due(store)
    again = await claim_one(store)
    assert CrawlState.read(again.last_cursor, HOME) == state
    state = await visited(store, again, state)
    assert (state.crawled, await left(store)) == (2, [(3, "b")])


async def test_a_crawl_that_ends_leaves_no_frontier_and_a_source_that_has_run(store: Store, clock: FakeClock) -> None:
    await store.sources.upsert(NewSource("s", "s", HOME))
    job, state = await crawling(store)
    state = await visited(store, job, state)
    done = await store.crawls.complete(held(job), state)
    assert (done.is_done, await left(store)) == (True, [])
    assert (await store.sources.get("s")).last_run_at == clock.now()
    assert CrawlState.read((await store.get(job.id)).last_cursor, HOME) == done


async def test_a_recurring_crawl_starts_anew_each_time(store: Store, clock: FakeClock) -> None:
    job = await running(store, a_job("crawl", recurrence=recurring(), run_at=clock.now()))
    state = await store.crawls.begin(held(job), HOME)
    await visited(store, job, state, HOME + "a")
    await end(store, clock, job)
    clock.advance(hours=1)
    await due(store)
    again = await claim_one(store)
    assert again.last_cursor is None
    assert await store.crawls.begin(held(again), HOME + "x") == CrawlState(HOME + "x", known=1)
    assert await left(store) == [(1, "x")]


async def test_a_job_that_is_pruned_takes_its_frontier_along(store: Store) -> None:
    job, state = await crawling(store)
    await visited(store, job, state, HOME + "a")
    await store.cancel([job.id])
    await execute(store, f"delete from windlass_jobs where id = {job.id}")
    await execute(store, f"delete from windlass_bodies where job_id = {job.id}")
    await execute(store, f"delete from windlass_executions where job_id = {job.id}")
    assert await execute(store, "select count(*) from windlass_frontier") == [(0,)]


def test_a_cursor_that_is_none_or_of_another_crawl_is_not_taken() -> None:
    state = CrawlState(HOME, 3, 2, 1, notes=("x",))
    assert CrawlState.read(state.cursor(), HOME) == state
    for cursor in (None, "", "null", "7", "{}", "[1]", '{"url":"x"}', '{"notes":1}', state.cursor() + "}"):
        assert CrawlState.read(cursor, HOME) is None
    assert CrawlState.read(state.cursor(), HOME + "other") is None


def test_a_cursor_always_fits() -> None:
    state = CrawlState(HOME + "ü" * 2000)
    for place in range(50):
        address = Address(place, HOME + "\u0001ü" * 1000, 1)
        state = state.after(Visit(address, address.url, error="ü" * 1000), is_indexed=False, is_twin=False, added=0)
    assert (state.errors, len(state.notes)) == (50, MAX_NOTES)
    assert len(state.cursor().encode()) < MAX_CURSOR
