"""Events: everybody who listens is told what changed, soon and seldom, and nobody who listens holds the server up."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.support.stores import migrate_sqlite
from tests.web.serving import Served, listening, served
from windlass import Windlass
from windlass.core.access import Role
from windlass.core.alert_rules import read_rules
from windlass.core.job import NewJob
from windlass.core.topic import Topic
from windlass.errors import StoreUnavailable
from windlass.web.changes import BEAT, Changes, EventTiming
from windlass.web.errors import Refusal
from windlass.web.limits import HttpLimits

PATIENCE_S = 60.0
TOKEN = "static-admin-token"
STREAM = {"accept": "text/event-stream", "authorization": f"Bearer {TOKEN}"}
BRISK = EventTiming(gap=timedelta(milliseconds=20), look=timedelta(milliseconds=50), beat=timedelta(milliseconds=100))


@asynccontextmanager
async def client_of(port: int) -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE_S) as client:
        yield client


async def next_event(lines: AsyncIterator[str]) -> dict[str, Any]:
    """Read on to the next event's data."""
    async with asyncio.timeout(PATIENCE_S):
        async for line in lines:
            if line.startswith("data: "):
                return dict(json.loads(line.removeprefix("data: ")))
    raise AssertionError("the stream has ended")


async def event_with(lines: AsyncIterator[str], state: str, jobs: int) -> dict[str, Any]:
    """Read on until so many jobs are in a state."""
    while (event := await next_event(lines))["counts"][state] != jobs:
        pass
    return event


@pytest.fixture
def events(url: str) -> Iterator[tuple[int, str]]:
    with listening(Windlass(url, admin_token=TOKEN)) as port:
        yield port, url


async def test_two_clients_are_told_of_an_enqueue_and_of_its_end(events: tuple[int, str]) -> None:
    port, url = events
    async with client_of(port) as client, AsyncExitStack() as stack, Windlass(url) as other:
        streams = [await stack.enter_async_context(client.stream("GET", "/api/v1/events", headers=STREAM)) for _ in range(2)]
        lines = [stream.aiter_lines() for stream in streams]
        for stream, each in zip(streams, lines, strict=True):
            assert stream.headers["content-type"] == "text/event-stream; charset=utf-8"
            first = await next_event(each)
            assert (set(first["topics"]), first["counts"]["pending"]) == (set(Topic), 0)
        # From another process's point of view: nothing but the database is between the two.
        store = await other.store()
        [job] = await store.enqueue([NewJob(task="t")])
        for each in lines:
            await event_with(each, "pending", 1)
        await store.cancel([job.id])
        for each in lines:
            await event_with(each, "cancelled", 1)


async def test_a_client_is_told_of_an_alert(events: tuple[int, str]) -> None:
    port, url = events
    async with (
        client_of(port) as client,
        client.stream("GET", "/api/v1/events", headers=STREAM) as stream,
        Windlass(url) as other,
    ):
        lines = stream.aiter_lines()
        await next_event(lines)
        store = await other.store()
        await store.alerts.evaluate(read_rules("depth=0"))
        await store.enqueue([NewJob(task="t")])
        await event_with(lines, "pending", 1)
        await store.alerts.evaluate(read_rules("depth=0"))
        while "alerts" not in (await next_event(lines))["topics"]:
            pass
        assert [one.alert.rule for one in (await store.alerts.board()).open] == ["depth"]


@pytest.mark.parametrize("url", ["sqlite-file"], indirect=True)
async def test_a_burst_makes_few_events(events: tuple[int, str]) -> None:
    port, url = events
    async with (
        client_of(port) as client,
        client.stream("GET", "/api/v1/events", headers=STREAM) as stream,
        Windlass(url) as other,
    ):
        lines = stream.aiter_lines()
        await next_event(lines)
        store, started = await other.store(), time.monotonic()
        for _ in range(100):
            await store.enqueue([NewJob(task="t")])
        told = 1
        while (await next_event(lines))["counts"]["pending"] < 100:
            told += 1
        # Four a second and the two at the ends.
        assert told <= 4 * (time.monotonic() - started) + 2


def test_a_server_stops_at_once_while_clients_listen(tmp_path: Path) -> None:
    path = tmp_path / "windlass.db"
    migrate_sqlite(path)
    with httpx2.Client(timeout=PATIENCE_S) as client:
        with listening(Windlass(f"sqlite:///{path}", admin_token=TOKEN)) as port:
            streams = [client.stream("GET", f"http://127.0.0.1:{port}/api/v1/events", headers=STREAM) for _ in range(3)]
            opened = [stream.__enter__() for stream in streams]
            rest = [one.iter_lines() for one in opened]
            assert all(next(lines).startswith("retry:") for lines in rest)
            started = time.monotonic()
        assert time.monotonic() - started < 2
        # They end in order: the whole answer was sent.
        assert all("event: change" in list(lines) for lines in rest)
        for stream in streams:
            stream.__exit__(None, None, None)


@pytest.mark.parametrize("url", ["sqlite-file"], indirect=True)
async def test_who_is_one_too_many_is_told_to_come_later_and_who_leaves_makes_room(url: str) -> None:
    with listening(Windlass(url, admin_token=TOKEN), HttpLimits(streams=2)) as port:
        async with client_of(port) as client:
            async with (
                client.stream("GET", "/api/v1/events", headers=STREAM),
                client.stream("GET", "/api/v1/events", headers=STREAM),
            ):
                refused = await client.get("/api/v1/events", headers=STREAM)
                assert (refused.status_code, refused.headers["retry-after"]) == (503, "10")
                assert "2 clients listen already" in refused.json()["error"]
            async with asyncio.timeout(PATIENCE_S):
                while True:
                    async with client.stream("GET", "/api/v1/events", headers=STREAM) as again:
                        if again.status_code == 200:
                            break
                    await asyncio.sleep(0.02)


@pytest.mark.parametrize("url", ["sqlite-file"], indirect=True)
async def test_nobody_listens_longer_than_their_credentials_were_looked_at(url: str) -> None:
    with listening(Windlass(url, admin_token=TOKEN), HttpLimits(stream_within=timedelta(milliseconds=100))) as port:
        async with client_of(port) as client:
            answer = await client.get("/api/v1/events", headers=STREAM)
            assert (answer.status_code, "event: change" in answer.text) == (200, True)
            assert (await client.get("/api/v1/events", headers=STREAM | {"authorization": "Bearer no"})).status_code == 401


@pytest.mark.parametrize("url", ["sqlite-file"], indirect=True)
async def test_who_does_not_ask_for_a_stream_gets_one_answer(web: Served) -> None:
    await (await web.app.store()).enqueue([NewJob(task="t")])
    answer = (await web.ask("GET", "/api/v1/events", Role.VIEWER)).json()
    assert (set(answer["topics"]), answer["counts"]["pending"], answer["counts"]["running"]) == (set(Topic), 1, 0)


@pytest.mark.parametrize("url", ["sqlite-file"], indirect=True)
async def test_while_the_database_is_away_newcomers_are_told_so(web: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    async def away(_: Any) -> Any:
        raise StoreUnavailable("gone")

    monkeypatch.setattr(type(await web.app.store()), "count_jobs", away)
    for headers in ({}, STREAM):
        answer = await web.ask("GET", "/api/v1/events", headers=headers)
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    assert (await web.ask("HEAD", "/api/v1/events", headers=STREAM)).status_code == 503


@asynccontextmanager
async def watched(url: str, *, most: int = 10) -> AsyncIterator[tuple[Changes, asyncio.Event, Windlass]]:
    stopping = asyncio.Event()
    async with Windlass(url) as app:
        changes = Changes(app, stopping, most=most, timing=BRISK)
        async with changes.watching():
            yield changes, stopping, app


@pytest.mark.parametrize("url", ["sqlite-file"], indirect=True)
async def test_a_long_silence_has_signs_of_life(url: str) -> None:
    async with watched(url) as (changes, stopping, _), asyncio.timeout(PATIENCE_S):
        with changes.joined():
            async for event in changes.events():
                if event == BEAT:
                    stopping.set()
        with pytest.raises(Refusal), changes.joined():
            pass


@pytest.mark.parametrize("url", ["sqlite-file"], indirect=True)
async def test_a_slow_listener_is_told_to_look_at_everything(url: str) -> None:
    async with watched(url) as (changes, _, app), asyncio.timeout(PATIENCE_S):
        with changes.joined():
            slow, quick = changes.events(), changes.events()
            await anext(slow)
            await anext(quick)
            for jobs in range(1, 4):
                await (await app.store()).enqueue([NewJob(task="t")])
                while f'"pending":{jobs}' not in (await anext(quick)).decode():
                    pass
            merged = (await anext(slow)).decode()
            assert all(f'"{topic}"' in merged for topic in Topic)
            assert '"pending":3' in merged


@pytest.mark.parametrize("url", ["sqlite-file"], indirect=True)
async def test_nobody_looks_while_nobody_listens_and_many_look_once(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with watched(url, most=200) as (changes, _, app), AsyncExitStack() as stack:
        store = await app.store()
        looks = 0
        count_jobs = type(store).count_jobs

        async def counted(self: Any) -> Any:
            nonlocal looks
            looks += 1
            return await count_jobs(self)

        monkeypatch.setattr(type(store), "count_jobs", counted)
        await store.enqueue([NewJob(task="t")])
        await asyncio.sleep(0.2)
        assert looks == 0
        started = time.monotonic()
        listeners = [changes.events() for _ in range(100)]
        for _ in listeners:
            stack.enter_context(changes.joined())
        async with asyncio.timeout(PATIENCE_S):
            await asyncio.gather(*(anext(one) for one in listeners))
            await store.enqueue([NewJob(task="t")])
            await asyncio.gather(*(anext(one) for one in listeners))
        assert looks <= 2 + 2 * (time.monotonic() - started) / BRISK.gap.total_seconds()


@pytest.mark.parametrize("url", ["sqlite-file"], indirect=True)
async def test_the_server_listens_beside_its_own_upkeep(url: str) -> None:
    app = Windlass(url, admin_token=TOKEN)
    async with served(app) as web, app.keeping():
        assert (await web.ask("GET", "/api/v1/events")).status_code == 200
