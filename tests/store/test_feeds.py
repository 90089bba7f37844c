"""Feeds: one job each, enabled as long as somebody subscribes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from itertools import count, takewhile
from typing import Any

import psycopg
import pytest

from tests.store.builders import a_lease, claim_one, due, end, ending, failure, running
from tests.store.rivals import rivals
from tests.support.raw import execute
from windlass.core.audit import Actor
from windlass.core.feed import KEPT_ENTRIES, Feed, Fetched, NewEntry
from windlass.core.filter import JobFilter
from windlass.core.job import Claimed, Job, JobState
from windlass.core.outcome import Returned
from windlass.core.page import CappedCount, JobQuery
from windlass.errors import FeedNotFound, InvalidInput, LeaseLost
from windlass.store import Store
from windlass.store.calls import feeds
from windlass.store.doctor import check
from windlass.store.postgres import Postgres
from windlass.store.sqlite import Sqlite
from windlass.store.sqlite_library import sqlite_driver as driver
from windlass.testing import FakeClock

URL = "https://example.org/feed.xml"
HOUR = timedelta(hours=1)


async def subscribed(store: Store, subscriber: str = "ann", url: str = URL) -> Feed:
    return await store.feeds.subscribe(url, subscriber)


async def fetching(store: Store) -> tuple[Feed, Claimed]:
    """Subscribe to a feed and claim its job."""
    feed = await subscribed(store)
    await due(store)
    return feed, await claim_one(store)


async def fetch_jobs(store: Store) -> list[Job]:
    return list((await store.list_jobs(JobQuery(filter=JobFilter(tasks=("fetch_feed",))))).jobs)


def entry(guid: str = "1", **said: Any) -> NewEntry:
    return NewEntry(guid, **{"title": f"title {guid}", **said})


async def test_a_first_subscription_makes_the_feed_and_its_job_due_at_once(store: Store, clock: FakeClock) -> None:
    feed = await subscribed(store)
    [job] = await fetch_jobs(store)
    assert (job.id, job.name, job.subject) == (feed.job_id, f"fetch_feed:{feed.id}", str(feed.id))
    assert job.payload_json == f'{{"feedId":"{feed.id}"}}'
    assert (feed.next_fetch_at, feed.subscribers, feed.url) == (clock.now(), 1, URL)
    assert await store.feeds.get(feed.id) == await store.feeds.find(URL) == feed


async def test_subscribing_again_and_others_change_nothing_but_the_count(store: Store, clock: FakeClock) -> None:
    first = await subscribed(store)
    clock.advance(seconds=5)
    again = await subscribed(store)
    other = await subscribed(store, "bob")
    assert (again.job_id, again.next_fetch_at, again.subscribers) == (first.job_id, first.next_fetch_at, 1)
    assert (other.job_id, other.next_fetch_at, other.subscribers) == (first.job_id, first.next_fetch_at, 2)
    assert len(await fetch_jobs(store)) == 1


async def test_the_last_to_leave_disables_the_job_and_a_new_one_keeps_its_time(store: Store, clock: FakeClock) -> None:
    feed, held = await fetching(store)
    await subscribed(store, "bob")
    next_at = clock.now() + HOUR
    assert await end(store, clock, held, Returned(None, next_at))
    assert (await store.feeds.unsubscribe(feed.id, "ann")).next_fetch_at == next_at
    left = await store.feeds.unsubscribe(feed.id, "bob")
    assert (left.next_fetch_at, left.subscribers) == (None, 0)
    job = await store.get(held.id)
    assert (job.state, job.run_at) == (JobState.PAUSED, next_at)
    back = await subscribed(store, "ann")
    assert (back.next_fetch_at, back.job_id, back.subscribers) == (next_at, held.id, 1)


async def test_leaving_twice_or_without_having_come_is_fine(store: Store) -> None:
    feed = await subscribed(store)
    assert (await store.feeds.unsubscribe(feed.id, "eve")).subscribers == 1
    for _ in range(2):
        assert (await store.feeds.unsubscribe(feed.id, "ann")).next_fetch_at is None
    with pytest.raises(FeedNotFound, match="99"):
        await store.feeds.unsubscribe(99, "ann")


async def test_a_job_disabled_during_its_run_finishes_it_and_then_rests(store: Store, clock: FakeClock) -> None:
    feed, held = await fetching(store)
    assert (await store.feeds.unsubscribe(feed.id, "ann")).next_fetch_at is None
    await store.feeds.record_fetch(feed.id, held.token, Fetched([entry()]))
    assert await end(store, clock, held, Returned(None, clock.now() + HOUR))
    assert (await store.feeds.get(feed.id)).next_fetch_at is None
    assert (await subscribed(store)).next_fetch_at == clock.now() + HOUR


async def test_whatever_moves_the_job_moves_the_mirror(store: Store, clock: FakeClock) -> None:
    feed, held = await fetching(store)
    await end(store, clock, held, failure())
    job = await store.get(held.id)
    assert (job.state, job.run_at) == (JobState.SCHEDULED, clock.now() + HOUR)
    for verb, expected in (("pause", None), ("enable", clock.now() + HOUR), ("run_now", clock.now()), ("delete", None)):
        await getattr(store, verb)([held.id])
        assert (await store.feeds.get(feed.id)).next_fetch_at == expected, verb
    assert (await store.feeds.get(feed.id)).job_id is None
    assert (await subscribed(store)).next_fetch_at == clock.now()


async def test_a_cancelled_job_begins_anew_with_the_next_subscription(store: Store, clock: FakeClock) -> None:
    feed = await subscribed(store)
    await store.cancel([feed.job_id or 0])
    assert (await store.feeds.get(feed.id)).next_fetch_at is None
    clock.advance(seconds=1)
    assert (await subscribed(store, "bob")).next_fetch_at == clock.now()


async def test_a_feed_whose_mirror_was_tampered_with_is_reported(store: Store) -> None:
    feed = await subscribed(store)
    await execute(store, "update windlass_feeds set next_fetch_at = null")
    assert [(one.rule, one.job_id) for one in await check(store)] == [("feed", feed.job_id)]
    await subscribed(store)


async def test_subscribers_are_counted_as_they_come_leave_and_come_back(store: Store) -> None:
    feed = await subscribed(store)
    steps = [("+bob", 2), ("+bob", 2), ("-eve", 2), ("-bob", 1), ("-bob", 1), ("+bob", 2), ("-ann", 1), ("-bob", 0), ("+ann", 1)]
    for said, expected in steps:
        if said[0] == "+":
            await subscribed(store, said[1:])
        else:
            await store.feeds.unsubscribe(feed.id, said[1:])
        assert (await store.feeds.get(feed.id)).subscribers == expected, said
        assert await check(store) == []


async def test_subscribers_that_are_miscounted_are_reported(store: Store) -> None:
    feed = await subscribed(store)
    await execute(store, "update windlass_feeds set subscribers = 5")
    [problem] = await check(store)
    assert (problem.rule, problem.job_id, problem.detail) == ("subscribers", feed.job_id, f"feed {feed.id}: 5 counted, 1 present")
    await execute(store, "update windlass_feeds set subscribers = 1")


async def test_what_a_run_finds_is_kept_once_and_changed_in_place(store: Store, clock: FakeClock) -> None:
    feed, held = await fetching(store)
    found = Fetched([entry("1"), entry("2", published_at=clock.now())], title="News", etag='"a"', site_url="https://example.org")
    first = await store.feeds.record_fetch(feed.id, held.token, found)
    assert (first.new, first.feed.title, first.feed.etag) == (2, "News", '"a"')
    clock.advance(seconds=1)
    again = Fetched([entry("2", title="changed"), entry("3"), entry("3", title="last")], etag='"b"')
    second = await store.feeds.record_fetch(feed.id, held.token, again)
    assert (second.new, second.feed.title, second.feed.etag) == (1, "News", '"b"')
    kept = await store.feeds.entries(feed.id)
    assert [(one.guid, one.title) for one in kept] == [("3", "last"), ("2", "changed"), ("1", "title 1")]
    assert [one.updated_at == clock.now() for one in kept] == [True, True, False]
    assert [one.guid for one in await store.feeds.entries(feed.id, before=kept[1].id)] == ["1"]
    assert (await store.feeds.count_entries(feed.id)).total == 3


async def test_an_answer_without_a_change_keeps_what_is_known(store: Store, clock: FakeClock) -> None:
    feed, held = await fetching(store)
    known = Fetched([], title="News", etag='"a"', last_modified="then", hub="https://hub.example/", topic=URL)
    await store.feeds.record_fetch(feed.id, held.token, known)
    clock.advance(seconds=1)
    left = (await store.feeds.record_fetch(feed.id, held.token, Fetched())).feed
    assert (left.title, left.etag, left.last_modified, left.websub_hub) == ("News", '"a"', "then", "https://hub.example/")
    assert left.last_fetched_at == clock.now()


async def test_a_failure_counts_once_for_each_planned_run(store: Store, clock: FakeClock) -> None:
    feed, held = await fetching(store)
    for _ in range(2):
        counted = await store.feeds.record_failure(feed.id, held.token, "500")
        assert (counted.consecutive_failures, counted.last_error) == (1, "500")
    await end(store, clock, held, failure())
    clock.advance(hours=1)
    await due(store)
    held = await claim_one(store)
    assert (await store.feeds.record_failure(feed.id, held.token, "501")).consecutive_failures == 2
    found = await store.feeds.record_fetch(feed.id, held.token, Fetched())
    assert (found.feed.consecutive_failures, found.feed.last_error) == (0, None)


async def test_a_moved_feed_that_fails_is_tried_at_its_own_address(store: Store) -> None:
    feed, held = await fetching(store)
    moved = Fetched([], fetch_url="https://example.org/new.xml", etag='"a"')
    assert (await store.feeds.record_fetch(feed.id, held.token, moved)).feed.fetch_url == moved.fetch_url
    left = await store.feeds.record_failure(feed.id, held.token, "404")
    assert (left.fetch_url, left.etag, left.url) == (None, None, URL)


async def test_a_feed_that_is_gone_rests_until_somebody_subscribes(store: Store, clock: FakeClock) -> None:
    feed, held = await fetching(store)
    gone = await store.feeds.record_failure(feed.id, held.token, "410", is_gone=True)
    assert (gone.gone_at, gone.next_fetch_at) == (clock.now(), None)
    await end(store, clock, held, failure())
    assert (await store.get(held.id)).state is JobState.PAUSED
    back = await subscribed(store, "bob")
    assert (back.gone_at, back.next_fetch_at) == (None, clock.now() + HOUR)


async def test_a_run_that_lost_its_lease_writes_nothing(store: Store) -> None:
    feed, held = await fetching(store)
    for call in (
        store.feeds.record_fetch(feed.id, held.token + 1, Fetched([entry()])),
        store.feeds.record_failure(feed.id, held.token + 1, "late"),
    ):
        with pytest.raises(LeaseLost):
            await call
    other = await running(store)
    with pytest.raises(LeaseLost):
        await store.feeds.record_fetch(feed.id, other.token, Fetched([entry()]))
    left = await store.feeds.get(feed.id)
    assert (await store.feeds.entries(feed.id), left.consecutive_failures, left.last_error) == ([], 0, None)


async def test_only_the_newest_entries_are_kept(store: Store) -> None:
    feed = await subscribed(store)
    for start in range(0, KEPT_ENTRIES + 500, 500):
        await store.feeds.add_entries(feed.id, [entry(f"{number}") for number in range(start, start + 500)])
    assert (await store.feeds.count_entries(feed.id)).total == KEPT_ENTRIES
    assert (await store.feeds.entries(feed.id, limit=1))[0].guid == f"{KEPT_ENTRIES + 499}"
    assert await store.feeds.add_entries(feed.id, [entry("600")]) == 0


async def test_feeds_are_listed_page_by_page_and_by_subscriber(store: Store) -> None:
    for place in range(5):
        await subscribed(store, "ann" if place % 2 else "bob", f"{URL}?{place}")
    first = await store.feeds.list(limit=2)
    rest = await store.feeds.list(after=first[-1].id)
    assert [one.url[-1] for one in [*first, *rest]] == ["0", "1", "2", "3", "4"]
    assert [one.url[-1] for one in await store.feeds.list(subscriber="ann")] == ["1", "3"]
    [page] = await store.feeds.list(limit=1, subscriber="bob")
    pages = [page, *await store.feeds.list(after=page.id, subscriber="bob")]
    assert [one.url[-1] for one in pages] == ["0", "2", "4"]
    await store.feeds.unsubscribe(first[1].id, "ann")
    assert [one.url[-1] for one in await store.feeds.list(subscriber="ann")] == ["3"]
    assert (await store.feeds.count()).total == 5
    totals = {name: await store.feeds.count(subscriber=name) for name in ("ann", "bob", "eve")}
    assert totals == {
        "ann": CappedCount(1, is_exact=True),
        "bob": CappedCount(3, is_exact=True),
        "eve": CappedCount(0, is_exact=True),
    }


@pytest.mark.parametrize("url", ["", "ftp://example.org", "https://", "nothing", "https://example.org/" + "ü" * 1100])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(InvalidInput, match="url"):
        feeds.subscribe(url, "ann")


@pytest.mark.parametrize("subscriber", ["", "a\nb", "a" * 256])
def test_a_subscriber_without_a_name_is_refused(subscriber: str) -> None:
    with pytest.raises(InvalidInput, match="subscriber"):
        feeds.subscribe(URL, subscriber)
    with pytest.raises(InvalidInput, match="subscriber"):
        feeds.unsubscribe(1, subscriber)
    for reads in (feeds.list_feeds, feeds.count_feeds):
        with pytest.raises(InvalidInput, match="subscriber"):
            reads(subscriber=subscriber)


async def test_subscriptions_by_operators_are_audited(store: Store) -> None:
    acting = store.acting(Actor("ann"))
    feed = await acting.feeds.subscribe(URL, "ann")
    await acting.feeds.unsubscribe(feed.id, "ann")
    told = [(one.action, one.target) for one in await store.audit.list()]
    assert told == [("unsubscribe from feed", f"feed:{feed.id}"), ("subscribe to feed", f"feed:{feed.id}")]


async def test_a_hub_is_asked_agrees_expires_and_denies(store: Store, clock: FakeClock) -> None:
    feed, held = await fetching(store)
    assert await store.feeds.expiring_websub() == []
    hub = Fetched([], hub="https://hub.example/", topic=URL)
    await store.feeds.record_fetch(feed.id, held.token, hub)
    assert [one.id for one in await store.feeds.expiring_websub()] == [feed.id]
    asked = await store.feeds.ask_websub(feed.id, "token", "secret")
    assert (asked.websub_state, asked.websub_token, asked.websub_secret) == ("pending", "token", "secret")
    agreed = await store.feeds.verify_websub(feed.id, timedelta(days=2))
    assert (agreed.websub_state, agreed.websub_expires_at) == ("active", clock.now() + timedelta(days=2))
    assert await store.feeds.expiring_websub() == []
    clock.advance(days=1)
    assert len(await store.feeds.expiring_websub()) == 1
    again = await store.feeds.ask_websub(feed.id, "other", "other")
    assert (again.websub_state, again.websub_token, again.websub_secret) == ("active", "token", "secret")
    assert (await store.feeds.deny_websub(feed.id)).websub_state == "denied"
    assert await store.feeds.expiring_websub() == []
    clock.advance(days=8)
    assert len(await store.feeds.expiring_websub()) == 1
    await store.feeds.unsubscribe(feed.id, "ann")
    assert await store.feeds.expiring_websub() == []


async def test_another_hub_gets_other_secrets(store: Store) -> None:
    feed, held = await fetching(store)
    for hub in ("https://hub.example/", "https://other.example/"):
        found = Fetched([], hub=hub, topic=URL)
        left = (await store.feeds.record_fetch(feed.id, held.token, found)).feed
        assert (left.websub_state, left.websub_token, left.websub_secret) == (None, None, None)
        await store.feeds.ask_websub(feed.id, hub, hub)
        kept = (await store.feeds.record_fetch(feed.id, held.token, found)).feed
        assert (kept.websub_state, kept.websub_token) == ("pending", hub)


async def test_racing_subscribers_make_one_feed_with_one_job(store: Store) -> None:
    async with rivals(store) as others:
        made = await asyncio.gather(*(others[n % 4].feeds.subscribe(URL, f"s{n}") for n in range(20)))
    assert len({(one.id, one.job_id) for one in made}) == 1
    assert len(await fetch_jobs(store)) == 1
    assert (await store.feeds.find(URL)).subscribers == 20
    assert await check(store) == []


@pytest.mark.parametrize("is_followed", [True, False])
async def test_racing_to_come_and_to_leave_ends_as_the_subscriptions_say(store: Store, *, is_followed: bool) -> None:
    feed = await store.feeds.subscribe(URL, "s0")

    async def wander(place: int, here: Store) -> None:
        name = f"s{place}"
        for _ in range(4):
            await here.feeds.subscribe(URL, name)
            await here.feeds.unsubscribe(feed.id, name)
        if is_followed and place == 3:
            await here.feeds.subscribe(URL, name)

    async with rivals(store) as others:
        await asyncio.gather(*(wander(place, here) for place, here in enumerate(others)))
    left = await store.feeds.get(feed.id)
    [job] = await fetch_jobs(store)
    assert (left.subscribers, left.next_fetch_at is not None, job.is_enabled) == (int(is_followed), is_followed, is_followed)


async def test_runs_that_end_beside_those_who_come_and_leave_wait_for_nobody_in_a_circle(store: Store) -> None:
    feed = await store.feeds.subscribe(URL, "s0")
    is_over, has_run = asyncio.Event(), asyncio.Event()

    async def fetch(here: Store) -> None:
        while not is_over.is_set():
            await here.promote()
            for held in await here.claim(await here.slices(), 1, a_lease(), started=True):
                await here.feeds.record_fetch(feed.id, held.token, Fetched([entry()]))
                now = held.claimed_at
                await here.finish([ending(held, now, Returned(None, now))])
                has_run.set()
            await asyncio.sleep(0)

    async def wander(place: int, here: Store) -> None:
        # A claim leaves out a job that is locked just then: they go on until one run has come between them.
        for _ in takewhile(lambda done: done < 6 or not has_run.is_set(), count()):
            await here.feeds.subscribe(URL, f"s{place}")
            await here.feeds.verify_websub(feed.id, HOUR)
            await here.feeds.unsubscribe(feed.id, f"s{place}")

    async with rivals(store) as others, asyncio.TaskGroup() as group:
        group.create_task(fetch(others[0]))
        await asyncio.gather(*(wander(place, here) for place, here in enumerate(others[1:])))
        await others[1].feeds.unsubscribe(feed.id, "s0")
        is_over.set()
    left = await store.feeds.get(feed.id)
    [job] = await fetch_jobs(store)
    assert (left.subscribers, left.next_fetch_at, job.is_enabled) == (0, None, False)
    assert job.executions > 0


async def test_one_name_that_comes_and_leaves_at_once_is_counted_once(store: Store) -> None:
    feed = await store.feeds.subscribe(URL, "zoe")

    async def wander(here: Store) -> None:
        for _ in range(4):
            await here.feeds.subscribe(URL, "ann")
            await here.feeds.unsubscribe(feed.id, "ann")

    async with rivals(store) as others:
        await asyncio.gather(*map(wander, others))
    assert (await store.feeds.get(feed.id)).subscribers == 1
    assert [one for one in await check(store) if one.rule == "subscribers"] == []


@asynccontextmanager
async def transaction(store: Store, how: str) -> AsyncIterator[Any]:
    """Give a connection of the caller's own, and end its transaction."""
    database = store.database
    if isinstance(database, Postgres):
        async with await psycopg.AsyncConnection.connect(database.dsn) as connection:
            yield connection
            await getattr(connection, how)()
        return
    assert isinstance(database, Sqlite)
    if database.path == ":memory:":
        pytest.skip("a database in memory has one connection")
    plain = driver.connect(database.path, isolation_level=None)
    plain.execute("begin immediate")
    yield plain
    plain.execute(how)
    plain.close()


async def test_coming_and_leaving_belong_to_the_transaction_of_their_caller(store: Store) -> None:
    for how, expected in (("rollback", []), ("commit", [1])):
        async with transaction(store, how) as connection:
            await store.feeds.subscribe(URL, "ann", connection)
        found = await store.feeds.list()
        assert [one.subscribers for one in found] == expected
        assert len(await fetch_jobs(store)) == len(found)
    [feed] = await store.feeds.list()
    for how, left in (("rollback", 1), ("commit", 0)):
        async with transaction(store, how) as connection:
            assert (await store.feeds.unsubscribe(feed.id, "ann", connection)).subscribers == 0
        now = await store.feeds.get(feed.id)
        assert (now.subscribers, now.next_fetch_at is not None) == (left, bool(left))
