"""Feeds are fetched, kept and fetched again by the rules of the feed system."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path

import pytest

from tests.packs.feed_site import Answer, Site, a_site, feed, garbage, hang_up, silence, status, zipped
from tests.store.builders import a_lease
from tests.support.stores import fresh_url
from windlass import Windlass, packs
from windlass.core.feed import Feed, Fetched
from windlass.core.feed_timing import SPREAD
from windlass.core.job import Job, JobState, RunStatus
from windlass.packs import feeds
from windlass.packs.feeds import download
from windlass.packs.outgoing import Limits
from windlass.testing import run_all

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
SLACK = timedelta(seconds=30)
ON_SQLITE = pytest.mark.parametrize("reader", ["sqlite-file"], indirect=True)


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with a_site() as made:
        yield made


@pytest.fixture(params=["sqlite-file", "postgres"])
async def reader(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Windlass]:
    """Give an application with the pack, which may speak to this machine."""
    with ExitStack() as stack:
        server = request.getfixturevalue("postgres_server") if request.param == "postgres" else None
        url = stack.enter_context(fresh_url(request.param, tmp_path, server))
        made = Windlass(url, allow_private_addresses=True)
        packs.install(made, ["feeds"])
        async with made:
            yield made


async def fetched(app: Windlass, site: Site, answer: Answer, path: str = "/feed") -> Feed:
    """Subscribe to a feed that answers like this, or run it again, and give what that left."""
    site.pages[path] = answer
    feed = await feeds.subscribe(app, site.url(path), "ann")
    assert feed.job_id is not None
    await app.run_now(feed.job_id)
    await run_all(app)
    return await app.feeds.get(feed.id)


async def job_of(app: Windlass, feed: Feed) -> Job:
    assert feed.job_id is not None
    return await app.get(feed.job_id)


async def wait_of(app: Windlass, feed: Feed) -> timedelta:
    """Say how long the job waits, by the mirror and by the job, which must agree."""
    job = await job_of(app, feed)
    assert (feed.next_fetch_at, job.state) == (job.run_at, JobState.SCHEDULED)
    assert job.finished_at is not None
    return job.run_at - job.finished_at


def is_near(waited: timedelta, asked: timedelta) -> bool:
    """Whether a wait is what was asked for, or up to a tenth longer."""
    return -SLACK < waited - asked < asked * SPREAD + SLACK


@ON_SQLITE
async def test_feeds_subscribed_together_do_not_stay_together(reader: Windlass, site: Site) -> None:
    for number in range(6):
        site.pages[f"/{number}"] = feed(1, cache_control="max-age=7200")
        await feeds.subscribe(reader, site.url(f"/{number}"), "ann")
    await run_all(reader)
    waits = [await wait_of(reader, one) for one in await reader.feeds.list()]
    assert all(is_near(wait, 2 * HOUR) for wait in waits)
    assert max(waits) - min(waits) > MINUTE / 2


@ON_SQLITE
async def test_how_large_a_feed_may_be_is_a_setting(reader: Windlass, site: Site) -> None:
    large = feed(1, extra=f"<!-- {'x' * 2_100_000} -->")
    left = await fetched(reader, site, large)
    assert "2000000" in (left.last_error or "").replace(",", "").replace("_", "")
    roomy = Windlass(reader.settings.database_url, allow_private_addresses=True, max_feed_bytes=3_000_000)
    packs.install(roomy, ["feeds"])
    async with roomy:
        left = await fetched(roomy, site, large)
    assert (left.last_error, left.title) == (None, "News")


async def test_new_entries_are_kept_and_the_job_comes_back(reader: Windlass, site: Site) -> None:
    feed_left = await fetched(reader, site, feed(1, 2, 3))
    assert (feed_left.title, feed_left.site_url, feed_left.consecutive_failures) == ("News", "https://example.org/", 0)
    assert [one.guid for one in await reader.feeds.entries(feed_left.id)] == ["3", "2", "1"]
    assert is_near(await wait_of(reader, feed_left), HOUR)
    [run] = await reader.executions(feed_left.job_id or 0)
    assert (run.status, run.items_crawled, run.items_indexed) == (RunStatus.COMPLETED, 3, 3)
    again = await fetched(reader, site, feed(2, 3, 4))
    assert (again.id, again.job_id) == (feed_left.id, feed_left.job_id)
    assert [one.guid for one in await reader.feeds.entries(again.id)] == ["4", "3", "2", "1"]


@ON_SQLITE
@pytest.mark.parametrize(
    ("answer", "wait"),
    [
        (feed(1), HOUR),
        (feed(1, cache_control="max-age=60"), 10 * MINUTE),
        (feed(1, cache_control="max-age=1800"), 30 * MINUTE),
        (feed(1, extra="<ttl>30</ttl>"), HOUR),
        (feed(1, extra="<ttl>180</ttl>"), 3 * HOUR),
        (feed(1, extra="<sy:updatePeriod>daily</sy:updatePeriod><sy:updateFrequency>2</sy:updateFrequency>"), 12 * HOUR),
        (feed(1, cache_control="max-age=99999999"), 7 * DAY),
        (zipped(1), HOUR),
        (status(500), HOUR),
        (status(503, retry_after="10800"), 3 * HOUR),
        (status(429, retry_after="99999999"), 7 * DAY),
        (status(404), HOUR),
        (garbage, HOUR),
        (hang_up, HOUR),
    ],
)
async def test_the_next_run_is_what_the_answer_asks_for(reader: Windlass, site: Site, answer: Answer, wait: timedelta) -> None:
    assert is_near(await wait_of(reader, await fetched(reader, site, answer)), wait)


async def test_a_feed_that_has_not_changed_is_not_sent_again(reader: Windlass, site: Site) -> None:
    answer = feed(1, etag='"v1"', last_modified="Thu, 15 Jan 2026 10:30:00 GMT", cache_control="max-age=1200")
    await fetched(reader, site, answer)
    left = await fetched(reader, site, answer)
    assert [asked.headers.get("if-none-match") for asked in site.seen] == [None, '"v1"']
    assert site.seen[1].headers["if-modified-since"] == "Thu, 15 Jan 2026 10:30:00 GMT"
    assert (left.etag, left.title, len(await reader.feeds.entries(left.id))) == ('"v1"', "News", 1)
    assert is_near(await wait_of(reader, left), 20 * MINUTE)
    first, second = reversed(await reader.executions(left.job_id or 0))
    assert [first.result_json, second.result_json] == [
        '{"new":1,"entries":1,"is_changed":true}',
        '{"new":0,"entries":0,"is_changed":false}',
    ]


@ON_SQLITE
async def test_a_validator_that_cannot_be_sent_back_is_not_kept(reader: Windlass, site: Site) -> None:
    for etag in ('"ü"', '"€"', '"a\tb"', f'"{"x" * 500}"'):
        left = await fetched(reader, site, feed(1, etag=etag, last_modified="today"))
        assert (left.etag, left.last_modified, left.consecutive_failures) == (None, "today", 0)


@ON_SQLITE
async def test_a_feed_with_an_old_validator_that_cannot_be_sent_is_fetched(reader: Windlass, site: Site) -> None:
    site.pages["/feed"] = feed(1)
    made = await feeds.subscribe(reader, site.url("/feed"), "ann")
    store = await reader.store()
    [held] = await store.claim(await store.slices(), 1, a_lease("an older release"), started=True)
    await store.feeds.record_fetch(made.id, held.token, Fetched(etag='"€"'))
    await store.take_lease([held.id])
    await store.reclaim()
    left = await fetched(reader, site, feed(1))
    assert (left.consecutive_failures, site.seen[-1].headers.get("if-none-match")) == (0, None)


async def test_failures_back_off_count_on_the_feed_and_end_with_a_success(reader: Windlass, site: Site) -> None:
    left = await feeds.subscribe(reader, site.url("/feed"), "ann")
    for failures, wait in ((1, HOUR), (2, 2 * HOUR), (3, 4 * HOUR), (4, 8 * HOUR)):
        left = await fetched(reader, site, status(500))
        assert (left.consecutive_failures, left.last_error) == (failures, f"{left.url} answered 500")
        assert abs(await wait_of(reader, left) - wait) < SLACK
    runs = await reader.executions(left.job_id or 0)
    assert [(run.status, run.error) for run in runs] == [(RunStatus.FAILED, f"{left.url} answered 500")] * 4
    assert await reader.dead_letters_of(left.job_id or 0) == []
    well = await fetched(reader, site, feed(1))
    assert (well.consecutive_failures, well.last_error) == (0, None)
    assert is_near(await wait_of(reader, well), HOUR)


@ON_SQLITE
@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (status(404), "answered 404"),
        (garbage, "is neither RSS nor Atom"),
        (hang_up, "127.0.0.1"),
        (silence, "no whole answer within"),
        (status(302, location="file:///etc/passwd"), "file"),
        (status(302, location="/feed"), "still redirected"),
        (status(302, location="http://[x/"), "cannot be read"),
        (status(302, location="http://169.254.169.254/latest"), "metadata"),
    ],
)
async def test_a_failure_says_what_is_wrong(
    reader: Windlass, site: Site, monkeypatch: pytest.MonkeyPatch, *, answer: Answer, text: str
) -> None:
    monkeypatch.setattr(download, "LIMITS", Limits(total_s=0.3))
    left = await fetched(reader, site, answer)
    assert left.last_error is not None
    assert text in left.last_error
    assert left.consecutive_failures == 1


async def test_private_addresses_are_refused_unless_allowed(site: Site, tmp_path: Path) -> None:
    with fresh_url("sqlite-file", tmp_path, None) as url:
        app = Windlass(url)
        packs.install(app, ["feeds"])
        async with app:
            left = await fetched(app, site, feed(1))
    assert "loopback" in (left.last_error or "")
    assert site.seen == []


@ON_SQLITE
async def test_a_permanent_move_is_remembered_and_a_detour_is_not(reader: Windlass, site: Site) -> None:
    site.pages |= {"/new": feed(1), "/old": status(301, location="/new"), "/detour": status(302, location="/new")}
    moved = await fetched(reader, site, site.pages["/old"], "/old")
    await fetched(reader, site, site.pages["/old"], "/old")
    assert (moved.fetch_url, moved.url) == (site.url("/new"), site.url("/old"))
    assert site.counts == {"/old": 1, "/new": 2}
    detour = await fetched(reader, site, site.pages["/detour"], "/detour")
    assert (detour.fetch_url, detour.consecutive_failures) == (None, 0)
    site.pages["/new"] = status(404)
    lost = await fetched(reader, site, feed(1), "/old")
    assert (lost.fetch_url, lost.consecutive_failures) == (None, 1)
    assert (await fetched(reader, site, feed(1), "/old")).consecutive_failures == 0


async def test_a_feed_that_is_gone_is_not_fetched_again_until_somebody_subscribes(reader: Windlass, site: Site) -> None:
    left = await fetched(reader, site, status(410))
    job = await job_of(reader, left)
    assert (left.next_fetch_at, job.state) == (None, JobState.PAUSED)
    assert left.gone_at is not None
    [run] = await reader.executions(job)
    assert (run.status, run.error) == (RunStatus.FAILED, f"{left.url} answered 410")
    back = await feeds.subscribe(reader, left.url, "bob")
    assert (back.gone_at, (await job_of(reader, back)).is_enabled) == (None, True)


async def test_who_unsubscribes_stops_the_fetching(reader: Windlass, site: Site) -> None:
    left = await fetched(reader, site, feed(1))
    await feeds.unsubscribe(reader, left.id, "ann")
    assert (await reader.feeds.get(left.id)).next_fetch_at is None
    assert not (await job_of(reader, left)).is_enabled


@ON_SQLITE
async def test_a_job_that_is_not_the_feeds_own_does_nothing(reader: Windlass, site: Site) -> None:
    left = await fetched(reader, site, feed(1))
    extra = await reader.enqueue("fetch_feed", {"feedId": str(left.id)})
    unknown = await reader.enqueue("fetch_feed", {"feedId": "999"})
    await run_all(reader)
    assert (await reader.get(extra.id)).state is JobState.CANCELLED
    assert (await reader.get(unknown.id)).last_error == "there is no feed '999'"
    assert site.counts == {"/feed": 1}


@ON_SQLITE
async def test_a_worker_that_dies_after_writing_counts_nothing_twice(reader: Windlass, site: Site) -> None:
    site.pages["/feed"] = status(500)
    made = await feeds.subscribe(reader, site.url("/feed"), "ann")
    store = await reader.store()
    # What a worker would have written before it was killed: the job's run is not finished.
    await store.promote()
    [held] = await store.claim(await store.slices(), 1, a_lease("doomed"), started=True)
    await store.feeds.record_failure(made.id, held.token, "answered 500")
    await store.take_lease([held.id])
    await store.reclaim()
    await run_all(reader)
    left = await reader.feeds.get(made.id)
    assert (left.consecutive_failures, site.counts["/feed"]) == (1, 1)
    assert abs(await wait_of(reader, left) - HOUR) < SLACK


def test_renewal_is_declared_and_blocking_code_subscribes_too(tmp_path: Path) -> None:
    with fresh_url("sqlite-file", tmp_path, None) as url, Windlass(url) as app:
        packs.install(app, ["feeds"])
        assert "renew_websub" in app.declared
        made = feeds.subscribe_sync(app, "https://example.org/feed", "ann")
        assert feeds.unsubscribe_sync(app, made.id, "ann").subscribers == 0
    assert "feeds" in packs.SAFE
