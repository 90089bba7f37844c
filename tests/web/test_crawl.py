"""Crawls made over HTTP in both crawlers' forms run for real, and what they find is read over HTTP."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.packs.crawl_site import TestSite
from tests.support.local_site import serve
from tests.web.serving import Served, served
from windlass import Windlass, packs
from windlass.core.access import Role

JOBS, PAGES, ADMIN = "/api/v1/jobs", "/api/v1/pages", "/api/admin"


async def ended(web: Served, path: str) -> dict[str, Any]:
    async with asyncio.timeout(20):
        while True:
            found: dict[str, Any] = (await web.ask("GET", path, Role.VIEWER)).json()
            if found["state"] in {"completed", "failed"}:
                return found
            await asyncio.sleep(0.02)


async def test_both_seeds_crawl_for_real(url: str) -> None:
    app = Windlass(url, allow_private_addresses=True, crawl_delay=0)
    packs.install(app, ["crawl"])
    site = TestSite()
    async with serve(site.answer) as there, served(app) as web, app.working():
        made = await web.ask("POST", JOBS, Role.PRODUCER, json={"url": there.url("/p/9"), "source_name": "news"})
        assert made.status_code == 201, made.text
        job = await ended(web, f"{JOBS}/{made.json()['id']}")
        assert (job["state"], job["result"]["crawled"]) == ("completed", 43), job["last_error"]
        [run] = (await web.ask("GET", f"{JOBS}/{job['id']}/executions", Role.VIEWER)).json()["executions"]
        assert (run["items_crawled"], run["items_indexed"]) == (43, 41)
        await _reads(web)
        await _crawls_by_subject(web, there.url("/p/4"))
    assert site.asked["/private/x"] == 0


async def _reads(web: Served) -> None:
    first = (await web.ask("GET", f"{PAGES}?source_id=news&limit=2", Role.VIEWER)).json()
    assert (first["total"], first["next"], [one["title"] for one in first["pages"]]) == (41, 2, ["Page 9", "Page 29"])
    found = (await web.ask("GET", f"{PAGES}?search=NUMBER%20n9&source_id=news", Role.VIEWER)).json()
    [page] = found["pages"]
    assert (found["total"], found["next"], page["title"]) == (1, None, "Page 9")
    whole = (await web.ask("GET", f"{PAGES}/{page['id']}", Role.VIEWER)).json()
    assert (whole["status"], whole["etag"], whole["text"][:16]) == (200, '"1"', "the number is n9")
    for odd in ('"', "'%00", "a AND", "(*"):
        assert (await web.ask("GET", PAGES, Role.VIEWER, params={"search": odd})).json()["pages"] == []
    assert (await web.ask("GET", f"{PAGES}/999999", Role.VIEWER)).status_code == 404
    assert (await web.ask("GET", f"{PAGES}?search={'x' * 201}", Role.VIEWER)).status_code == 400
    bad = await web.ask("POST", JOBS, Role.PRODUCER, json={"task": "crawl", "payload": {"url": "http://127.1/"}})
    assert (bad.status_code, "url" in bad.json()["error"]) == (400, True)


async def _crawls_by_subject(web: Served, url: str) -> None:
    unknown = (await web.ask("POST", f"{ADMIN}/jobs", Role.PRODUCER, json={"subreddit_id": 8})).json()
    job = await ended(web, f"{JOBS}/{unknown['id']}")
    assert (job["state"], "source '8' is not known" in job["last_error"]) == ("failed", True)
    await web.ask("POST", "/api/v1/sources", Role.PRODUCER, json={"id": "7", "url": url})
    schedule = {"name": "often", "subreddit_id": 7, "cron_expression": "@every 1s"}
    assert (await web.ask("POST", f"{ADMIN}/scheduled-jobs", Role.OPERATOR, json=schedule)).status_code == 201
    async with asyncio.timeout(20):
        while (await web.ask("GET", "/api/v1/sources/7", Role.VIEWER)).json()["last_run_at"] is None:  # noqa: ASYNC110 - another side
            await asyncio.sleep(0.02)
    assert (await web.ask("GET", f"{PAGES}?search=n4&source_id=7", Role.VIEWER)).json()["total"] == 1
