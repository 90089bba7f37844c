"""The priority crawl queue from end to end: enqueued over HTTP, run by a worker that has the code, shown over HTTP."""

from __future__ import annotations

import asyncio

import pytest

from tests.web.serving import Served, served
from windlass import JobContext, Windlass
from windlass.core.access import Role

JOBS = "/api/admin/jobs"


async def status_of(web: Served, number: int, *wanted: str) -> str:
    async with asyncio.timeout(20):
        while True:
            listed = (await web.ask("GET", JOBS, Role.VIEWER)).json()
            found = next((str(one["status"]) for one in listed if one["id"] == number), "")
            if found in wanted:
                return found
            await asyncio.sleep(0.02)


@pytest.mark.parametrize("url", ["sqlite-file", "postgres"], indirect=True)
async def test_a_crawl_runs_fails_is_retried_by_hand_and_succeeds(url: str) -> None:
    app = Windlass(url)
    seen: list[str | None] = []
    is_scheduled = asyncio.Event()

    @app.task(name="crawl", lane="slow", max_attempts=2)
    async def crawl(ctx: JobContext) -> None:
        seen.append(ctx.subject)
        if ctx.subject == "9":
            is_scheduled.set()
        if len(seen) == 1:
            raise RuntimeError("the site is down")

    async with served(app) as web, app.working():
        made = (await web.ask("POST", JOBS, Role.PRODUCER, json={"subreddit_id": 7, "max_retries": 3})).json()
        assert await status_of(web, made["id"], "failed") == "failed"
        assert (await web.ask("POST", f"{JOBS}/{made['id']}/retry", Role.OPERATOR)).status_code == 200
        assert await status_of(web, made["id"], "success") == "success"
        schedule = {"name": "often", "subreddit_id": 9, "cron_expression": "@every 1s"}
        assert (await web.ask("POST", "/api/admin/scheduled-jobs", Role.OPERATOR, json=schedule)).status_code == 201
        async with asyncio.timeout(20):
            await is_scheduled.wait()
        [newest, *_] = (await web.ask("GET", JOBS)).json()
        assert (newest["subreddit_id"], newest["enqueued_by"]) == (9, "scheduler:often")
    assert seen[:2] == ["7", "7"]
    await app.aclose()
