"""A costly read that takes too long is ended, and its client is told what to do."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import psycopg
import pytest

from tests.support.stuck_reads import stuck_sources
from tests.web.conftest import SETTINGS
from tests.web.serving import Served, served
from windlass import Windlass
from windlass.web.limits import HttpLimits
from windlass.web.routes import ROUTES

# A doctor that finds a database too slow to read has found something, and answers with it.
COSTLY = [route for route in ROUTES if route.is_costly and route.path != "/api/v1/doctor"]
# Known without a look into the database.
STATIC = {"authorization": f"Bearer {SETTINGS['admin_token']}"}
QUERIES = {"/api/v1/items": {"collection": "c"}, "/api/v1/items/export": {"collection": "c"}}


async def ask(web: Served, path: str) -> tuple[int, str | None, str]:
    answer = await web.client.get(re.sub(r"\{\w+\}", "1", path), headers=STATIC, params=QUERIES.get(path))
    return answer.status_code, answer.headers.get("retry-after"), answer.text


async def test_list_that_takes_too_long_is_ended_and_the_work_goes_on(url: str) -> None:
    async with served(Windlass(url, **SETTINGS), HttpLimits(read_for=timedelta(milliseconds=300))) as web:
        with stuck_sources(url):
            began = time.monotonic()
            status, retry_after, text = await ask(web, "/api/v1/sources")
            assert time.monotonic() - began < 4
            assert (status, retry_after) == (503, "2")
            assert "ask for less, with a filter or a smaller limit, or try again later" in text
            made = await web.client.post("/api/v1/jobs", headers=STATIC, json={"task": "t", "lane": "pull"})
            assert made.status_code == 201
        assert (await ask(web, "/api/v1/sources"))[0] == 200


@contextmanager
def no_time_to_read(url: str) -> Iterator[None]:
    """Let every read on PostgreSQL wait; on SQLite the limit alone is too short for any."""
    if not url.startswith("postgres"):
        yield
        return
    with psycopg.connect(url) as stranger:
        found = stranger.execute("select tablename from pg_tables where tablename like 'windlass%'").fetchall()
        stranger.execute(f"lock table {', '.join(name for (name,) in found)} in access exclusive mode")
        yield


async def test_every_costly_route_reads_only_so_long(url: str) -> None:
    limit = timedelta(milliseconds=100) if url.startswith("postgres") else timedelta(microseconds=1)
    async with served(Windlass(url, **SETTINGS), HttpLimits(read_for=limit)) as web:
        with no_time_to_read(url):
            answers = {route.path: await ask(web, route.path) for route in COSTLY}
    assert len(answers) > 20
    refused = {path: (status, "ask for less" in text) for path, (status, _, text) in answers.items()}
    assert refused == dict.fromkeys(answers, (503, True))


@pytest.mark.parametrize("path", ["/api/v1/jobs", "/"])
async def test_read_that_does_not_take_long_is_answered(url: str, path: str) -> None:
    async with served(Windlass(url, **SETTINGS)) as web:
        assert (await ask(web, path))[0] == 200
