"""Crawls of a real site on this machine, run by a real worker."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.crash.processes import until
from tests.packs.crawl_site import PAGES, Site, TestSite, html
from tests.support.local_site import reply, serve
from tests.support.stores import fresh_url
from windlass import Windlass, packs
from windlass.core.job import Execution, Job, JobState, WaitReason
from windlass.core.source import NewSource
from windlass.errors import InvalidPayload
from windlass.packs.crawl import reading
from windlass.packs.crawl.html import HtmlDocument, read_html
from windlass.packs.crawl.politeness import Politeness
from windlass.testing import Ran, run_all

SETTINGS: dict[str, Any] = {"allow_private_addresses": True, "crawl_delay": 0}
ALL = {"max_pages": 500, "max_depth": 2}
# 200 pages, /slow, /file.pdf, /quiet and /broken; /loop-a, /big, /gone and /boom; /old and /away.
CRAWLED, ERRORS, SKIPPED = PAGES + 4, 4, 2
NOT_INDEXED = {"/file.pdf", "/quiet"}


@pytest.fixture(params=["sqlite-file", "postgres"])
async def app(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Windlass]:
    with ExitStack() as stack:
        server = request.getfixturevalue("postgres_server") if request.param == "postgres" else None
        made = Windlass(stack.enter_context(fresh_url(request.param, tmp_path, server)), **SETTINGS)
        packs.install(made, ["crawl"])
        async with made:
            yield made


@pytest.fixture
def site() -> TestSite:
    return TestSite()


@pytest.fixture
async def served(site: TestSite) -> AsyncIterator[Site]:
    async with serve(site.answer) as made:
        yield made


async def crawled(app: Windlass, url: str, **payload: Any) -> tuple[Ran, Job, Execution]:
    store = await app.store()
    await store.sources.upsert(NewSource("site", "The site", url))
    await app.enqueue("crawl", {"source_id": "site", **payload})
    run = (await run_all(app))[-1]
    return run, await store.get(run.job_id), (await store.list_executions(run.job_id))[0]


async def test_a_site_is_crawled_within_its_limits_and_counted_exactly(app: Windlass, site: TestSite, served: Site) -> None:
    run, job, execution = await crawled(app, served.url(), **ALL)
    counts = {"crawled": CRAWLED, "indexed": CRAWLED - len(NOT_INDEXED), "errors": ERRORS, "skipped": SKIPPED}
    assert (run.status, run.result) == ("completed", counts), run.message
    assert (execution.items_crawled, execution.items_indexed) == (CRAWLED, CRAWLED - len(NOT_INDEXED))
    assert (job.progress_count, job.subject, job.lane) == (CRAWLED, "site", "default")
    pages = site.pages
    # Only where /old leads to is asked for twice.
    assert {target: count for target, count in pages.items() if count > 1} == {"/p/1": 2}
    assert (pages["/private/x"], pages["/hidden"], site.asked["/robots.txt"]) == (0, 0, 1)
    store = await app.store()
    found = await store.pages.list(source_id="site")
    assert len(found) == CRAWLED - len(NOT_INDEXED)
    assert [one.title for one in await store.pages.search("n137")] == ["Page 137"]
    assert [one.title for one in await store.pages.search("welcome")] == ["Home of the site"]
    assert (await store.sources.get("site")).last_run_at is not None
    notes = str(execution.metadata_json)
    for word in ("/loop-a: ", "in a circle", "larger than 2000000 bytes", "/gone answers HTTP 410", "/boom answers HTTP 500"):
        assert word in notes


async def test_pages_and_depth_are_limited(app: Windlass, site: TestSite, served: Site) -> None:
    run, *_ = await crawled(app, served.url("/p/1"), max_pages=7, max_depth=20)
    assert run.result == {"crawled": 7, "indexed": 7, "errors": 0, "skipped": 0}
    assert sum(site.pages.values()) == 7
    run, *_ = await crawled(app, served.url("/p/2"), max_depth=0)
    assert run.result["crawled"] == 1
    run, *_ = await crawled(app, served.url("/p/3"), max_pages=500, max_depth=1)
    # Itself, nine below, the first page and number 1.
    assert run.result["crawled"] == 12


async def test_what_has_not_changed_is_crawled_and_not_indexed_again(app: Windlass, site: TestSite, served: Site) -> None:
    site.conditional = True
    first, *_ = await crawled(app, served.url("/p/5"), max_depth=1)
    assert first.result == {"crawled": 12, "indexed": 12, "errors": 0, "skipped": 0}
    site.changed = {"/p/25"}
    again, *_ = await crawled(app, served.url("/p/5"), max_depth=1)
    assert again.result == {"crawled": 12, "indexed": 1, "errors": 0, "skipped": 0}
    assert [one.url for one in await (await app.store()).pages.search("news")] == [served.url("/p/25")]
    site.conditional = False
    plain, *_ = await crawled(app, served.url("/p/5"), max_depth=1)
    assert plain.result == {"crawled": 12, "indexed": 0, "errors": 0, "skipped": 0}


async def test_a_first_page_that_is_not_there_fails_for_good(app: Windlass, site: TestSite, served: Site) -> None:
    for status, said in {404: "HTTP 404: there is no such page", 410: "HTTP 410", 403: "HTTP 403", 400: "HTTP 400"}.items():
        site.status = status
        run, job, _ = await crawled(app, served.url())
        assert (job.state, said in (run.message or "")) == (JobState.FAILED, True), run.message


async def test_a_first_page_that_may_come_back_is_tried_again(app: Windlass, site: TestSite, served: Site) -> None:
    site.status = 503
    run, job, _ = await crawled(app, served.url())
    assert (job.state, job.wait_reason, "HTTP 503" in (run.message or "")) == (JobState.SCHEDULED, WaitReason.RETRY, True)
    assert 5 < (job.run_at - (await (await app.store()).clock())).total_seconds() <= 7
    site.status = 200
    await app.run_now(job)
    [again] = await run_all(app)
    assert (again.status, again.result["crawled"]) == ("completed", 50 - 4 - 2)


async def test_what_nobody_can_crawl_fails_for_good_and_says_why(app: Windlass, site: TestSite, served: Site) -> None:
    store = await app.store()
    await store.sources.upsert(NewSource("inside", "x", "http://169.254.169.254/latest"))
    await store.sources.upsert(NewSource("odd", "x", "http://user@example.org/"))
    await store.sources.upsert(NewSource("round", "x", served.url("/loop-a")))
    await store.sources.upsert(NewSource("large", "x", served.url("/big")))
    await store.sources.upsert(NewSource("private", "x", served.url("/private")))
    expected = {
        "nobody": "source 'nobody' is not known",
        "inside": "169.254.169.254 is link-local",
        "odd": "must not hold a user or password",
        "round": "redirects in a circle",
        "large": "larger than 2000000 bytes",
        "private": "does not allow",
    }
    for source in expected:
        await app.enqueue("crawl", {}, subject=source)
    await app.enqueue("crawl", {})
    for run, said in zip(await run_all(app), [*expected.values(), "names no source"], strict=True):
        assert said in (run.message or ""), run.message
        assert (await store.get(run.job_id)).state is JobState.FAILED
    assert site.pages["/private"] == 0


async def test_nobody_there_is_tried_again(app: Windlass, served: Site) -> None:
    run, job, _ = await crawled(app, "http://127.0.0.1:9999/")
    assert (job.state, job.wait_reason) == (JobState.SCHEDULED, WaitReason.RETRY), run.message
    del served


async def test_robots_that_cannot_be_told_forbid_everything_for_now(app: Windlass, site: TestSite, served: Site) -> None:
    site.robots = reply(503)
    run, job, _ = await crawled(app, served.url())
    assert (job.wait_reason, "nothing may be crawled now" in (run.message or "")) == (WaitReason.RETRY, True)
    assert not site.pages
    site.robots = reply(404)
    await app.run_now(job)
    [again] = await run_all(app)
    assert (again.status, site.pages["/private/x"]) == ("completed", 1)


async def test_of_a_huge_robots_txt_the_beginning_counts(app: Windlass, site: TestSite, served: Site) -> None:
    site.robots = reply(200, b"User-agent: *\nDisallow: /private\n" + b"# words\n" * 400_000 + b"Disallow: /\n")
    run, *_ = await crawled(app, served.url(), max_pages=40, max_depth=1)
    assert (run.status, site.pages["/private/x"], site.pages["/p/1"] > 0) == ("completed", 0, True), run.message


@pytest.mark.parametrize("charset", ["utf-8-sig", "utf-16"])
async def test_a_robots_txt_that_begins_with_a_byte_order_mark_is_obeyed(
    app: Windlass, site: TestSite, served: Site, charset: str
) -> None:
    site.robots = reply(200, "User-agent: *\nDisallow: /\n".encode(charset), content_type="text/plain")
    await crawled(app, served.url("/p/0"), max_pages=5)
    assert site.pages == {}


@pytest.mark.parametrize("target", ["http://169.254.169.254/robots.txt", "ftp://example.org/", "/robots.txt"])
async def test_a_robots_txt_that_leads_nowhere_is_none(app: Windlass, site: TestSite, served: Site, target: str) -> None:
    site.robots = reply(301, location=target)
    run, *_ = await crawled(app, served.url(), max_pages=3)
    assert run.status == "completed", run.message


async def test_a_site_that_goes_down_is_left_alone(app: Windlass) -> None:
    down = [f"/{n}" for n in range(20)]

    async def answer(seen: Any, write: Any) -> None:
        home = reply(200, html("home", tuple(down)), content_type="text/html")
        await write({"/": home, "/robots.txt": reply(404)}.get(seen.target, reply(503)))

    async with serve(answer) as served:
        run, job, _ = await crawled(app, served.url())
        assert "5 pages in a row could not be had" in (run.message or "")
        assert (job.state, job.progress_message) == (JobState.SCHEDULED, "1 crawled, 1 indexed, 4 errors, 0 skipped")
        assert len(served.seen) == 2 + 5


async def test_a_page_that_cannot_be_read_is_one_error(app: Windlass, monkeypatch: pytest.MonkeyPatch) -> None:
    def read(text: str) -> HtmlDocument:
        if "<title>odd" in text:
            raise RecursionError
        return read_html(text)

    monkeypatch.setattr(reading, "read_html", read)
    pages = {
        "/": html("home", ("/number", "/odd", "/last")),
        "/number": html(f"<a href='/&#{'9' * 5_000};'>&#{'9' * 5_000};"),
        "/odd": html("odd"),
        "/last": html("last"),
    }

    async def answer(seen: Any, write: Any) -> None:
        found = pages.get(seen.target)
        await write(reply(404) if found is None else reply(200, found, content_type="text/html"))

    async with serve(answer) as served:
        run, _, execution = await crawled(app, served.url(), max_depth=1)
        assert run.result == {"crawled": 3, "indexed": 3, "errors": 1, "skipped": 0}, run.message
        assert "/odd cannot be read: RecursionError" in str(execution.metadata_json)
        run, job, _ = await crawled(app, served.url("/odd"))
        assert (job.state, "cannot be read" in (run.message or "")) == (JobState.FAILED, True)


async def test_a_first_page_may_lead_to_another_host_and_the_site_is_there(app: Windlass, site: TestSite, served: Site) -> None:
    async def answer(seen: Any, write: Any) -> None:
        await write(reply(404) if seen.target == "/robots.txt" else reply(301, location=served.url("/p/7")))

    async with serve(answer) as front:
        run, *_ = await crawled(app, front.url(), max_depth=1)
    assert run.result == {"crawled": 12, "indexed": 12, "errors": 0, "skipped": 0}
    assert site.pages["/p/7"] == 1


async def test_a_crawl_is_cancelled_within_a_second_in_the_middle_of_a_request(
    app: Windlass, site: TestSite, served: Site
) -> None:
    site.hold = asyncio.Event()
    store = await app.store()
    await store.sources.upsert(NewSource("site", "x", served.url("/slow")))
    async with app.working():
        job = await app.enqueue("crawl", {"source_id": "site"})
        await until(lambda: site.asked["/slow"] == 1, "the request")
        began = time.monotonic()
        await app.cancel(job.id)

        async def stopped() -> bool:
            return (await store.get(job.id)).token is None

        while not await stopped():  # noqa: ASYNC110 - the row has no event
            await asyncio.sleep(0.01)
        assert time.monotonic() - began < 1
    assert (await store.get(job.id)).state is JobState.CANCELLED


async def test_a_bad_payload_is_refused_at_enqueue() -> None:
    app = Windlass("sqlite://")
    packs.install(app, ["crawl"])
    urls = ["ftp://example.org", "http://user:password@example.org/", "http://127.1/", "http://e.org/" + "ü" * 1000]
    numbers = [("max_pages", 0), ("max_pages", 10_001), ("max_pages", "5"), ("max_depth", -1), ("max_depth", 21)]
    for name, value in [*(("url", url) for url in urls), *numbers, ("source_id", ""), ("other", 1)]:
        with pytest.raises(InvalidPayload, match=name):
            await app.enqueue("crawl", {name: value})
    app.close()


async def test_one_request_at_a_time_goes_to_a_host_with_a_pause_between_any_two() -> None:
    turns = Politeness()
    clock = asyncio.get_running_loop().time
    log: list[tuple[str, float, float]] = []

    async def ask(host: str) -> None:
        async with turns.turn(host, 0.05):
            began = clock()
            await asyncio.sleep(0.01)
            log.append((host, began, clock()))

    began = clock()
    await asyncio.gather(*(ask(host) for host in ["a", "a", "a", "b"]))
    of_a = [entry for entry in log if entry[0] == "a"]
    assert all(later[1] - earlier[2] >= 0.049 for earlier, later in pairwise(of_a))
    assert next(entry for entry in log if entry[0] == "b")[1] - began < 0.04


async def test_the_pause_that_a_host_asks_for_is_kept(app: Windlass, site: TestSite, served: Site) -> None:
    site.robots = reply(200, b"User-agent: windlass\nCrawl-delay: 0.1\n")
    began = time.monotonic()
    run, *_ = await crawled(app, served.url("/p/1"), max_pages=4)
    assert (run.result["crawled"], time.monotonic() - began > 0.3) == (4, True)
