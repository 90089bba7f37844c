"""A server whose fleet has no packs."""

from __future__ import annotations

from typing import Any

import pytest

from tests.web.serving import Served, served
from windlass import Windlass, packs
from windlass.core.access import Role
from windlass.errors import UnknownTask

REMEDY = "`windlass worker --packs crawl`"
CRAWLS: list[tuple[str, dict[str, Any], str]] = [
    ("/api/v1/jobs", {"url": "https://example.com", "interval_minutes": 30}, "url: "),
    ("/api/v1/jobs", {"task": "crawl", "payload": {"url": "https://example.com"}}, "task: "),
    ("/api/admin/jobs", {"subreddit_id": 7}, "subreddit_id: "),
    ("/api/admin/scheduled-jobs", {"name": "often", "subreddit_id": 7, "cron_expression": "@hourly"}, "subreddit_id: "),
]


@pytest.mark.parametrize(("path", "body", "field"), CRAWLS)
async def test_a_crawl_that_nobody_runs_is_refused_with_the_remedy(
    web: Served, path: str, body: dict[str, Any], field: str
) -> None:
    answer = await web.ask("POST", path, Role.OPERATOR, json=body)
    assert answer.status_code == 400
    said = answer.json()["error"]
    assert said.startswith(field)
    assert REMEDY in said
    assert not (await web.app.list()).jobs
    assert (await web.ask("GET", "/api/v1/sources")).json()["sources"] == []


@pytest.mark.usefixtures("crawled")
@pytest.mark.parametrize(("path", "body", "field"), CRAWLS)
async def test_a_crawl_is_taken_once_a_worker_of_the_fleet_has_the_pack(
    web: Served, path: str, body: dict[str, Any], field: str
) -> None:
    answer = await web.ask("POST", path, Role.OPERATOR, json=body)
    assert answer.status_code == 201, (field, answer.text)


@pytest.mark.parametrize("url", ["sqlite-file"], indirect=True)
async def test_a_crawl_is_taken_by_a_server_that_has_the_pack_or_takes_anything(url: str) -> None:
    knowing = Windlass(url)
    packs.install(knowing, ["crawl"])
    for app in (knowing, Windlass(url, accept_unknown=True)):
        async with served(app) as web:
            assert (await web.ask("POST", "/api/v1/jobs", json={"url": "https://example.com"})).status_code == 201


@pytest.mark.parametrize("url", ["sqlite-file"], indirect=True)
async def test_every_task_of_a_pack_is_refused_with_the_name_of_its_pack(web: Served) -> None:
    for pack in packs.PACKS:
        app = Windlass()
        packs.install(app, [pack])
        for task in app.tasks:
            assert UnknownTask(task).pack == pack
            refused = await web.ask("POST", "/api/v1/jobs", json={"task": task})
            assert (refused.status_code, f"--packs {pack}`" in refused.text) == (400, True)
    assert UnknownTask("mine").pack is None
