"""Routes of other kinds: hot ones, streams, ones that take too long; and two servers on one database."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import AsyncIterator
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path

import httpx2
import pytest
from fastapi import Request, Response
from fastapi.responses import JSONResponse, StreamingResponse

from tests.support.stores import migrate_sqlite
from tests.web.serving import BASE, listening, served
from windlass import Windlass
from windlass.core.access import Role
from windlass.web.limits import HttpLimits
from windlass.web.request_context import context_of
from windlass.web.route import PUBLIC, Route
from windlass.web.server import Server

BEARER = {"authorization": "Bearer static-admin-token"}


async def documented(request: Request) -> dict[str, str]:
    """Say who asks."""
    raise NotImplementedError


async def hot(request: Request) -> Response:
    return JSONResponse({"who": context_of(request).principal.name, "sent": (await request.body()).decode()})


async def events(request: Request) -> StreamingResponse:
    """Tell what happens for as long as somebody listens."""
    stopping = context_of(request).server.stopping

    async def told() -> AsyncIterator[bytes]:
        yield b"data: hello\n\n"
        await stopping.wait()
        yield b"data: bye\n\n"

    return StreamingResponse(told(), media_type="text/event-stream")


async def stuck() -> None:
    """Never answer."""
    await asyncio.Event().wait()


async def huge() -> Response:
    """Answer with more than fits into any buffer."""
    return Response(b"x" * 64 * 1024 * 1024)


MORE = (
    Route("POST", "/hot", Role.VIEWER, documented, hot=hot),
    Route("GET", "/events", PUBLIC, events, is_stream=True),
    Route("GET", "/stuck", PUBLIC, stuck),
    Route("GET", "/huge", PUBLIC, huge),
)


@pytest.fixture
def app(tmp_path: Path) -> Windlass:
    path = tmp_path / "windlass.db"
    migrate_sqlite(path)
    return Windlass(f"sqlite:///{path}", admin_token="static-admin-token", grace="2s")


async def test_a_hot_route_is_guarded_and_documented_like_any_other(app: Windlass) -> None:
    server = Server(app, MORE)
    transport = httpx2.ASGITransport(app=server)
    async with app, httpx2.AsyncClient(transport=transport, base_url=BASE) as client:
        assert (await client.post("/hot", json={})).status_code == 401
        answer = await client.post("/hot", content=b'{"a":1}', headers={**BEARER, "content-type": "application/json"})
        assert answer.json() == {"who": "admin", "sent": '{"a":1}'}
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert (await client.post("/hot?x=1", json={}, headers=BEARER)).status_code == 400
    assert server.openapi["paths"]["/hot"]["post"]["summary"] == "Say who asks."


def test_streams_end_when_the_server_stops_and_do_not_hold_it_up(app: Windlass) -> None:
    with ExitStack() as stack:
        with listening(app, more=MORE) as port:
            streams = [stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=10)) for _ in range(5)]
            for stream in streams:
                stream.sendall(b"GET /events HTTP/1.1\r\nhost: localhost\r\n\r\n")
                assert b"hello" in read_until(stream, b"hello")
            before = time.monotonic()
        assert time.monotonic() - before < 2
        assert all(b"bye" in read_until(stream, b"bye") for stream in streams)


def read_until(connection: socket.socket, word: bytes) -> bytes:
    found = b""
    while word not in found and (part := connection.recv(65536)):
        found += part
    return found


def test_an_answer_that_takes_too_long_is_given_up(app: Windlass) -> None:
    limits = HttpLimits(answer_within=timedelta(milliseconds=200))
    with listening(app, limits, MORE) as port, httpx2.Client(base_url=f"http://127.0.0.1:{port}") as client:
        answer = client.get("/stuck")
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")


def test_a_client_that_does_not_read_its_answer_is_cut_off(app: Windlass) -> None:
    limits = HttpLimits(answer_within=timedelta(milliseconds=300))
    with listening(app, limits, MORE) as port, socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall(b"GET /huge HTTP/1.1\r\nhost: localhost\r\n\r\n")
        found = len(connection.recv(1))
        time.sleep(1)
        try:
            while part := connection.recv(1 << 20):
                found += len(part)
        except ConnectionResetError:
            pass
    assert found < 64 * 1024 * 1024


async def test_two_servers_on_one_database_give_the_same_answers(url: str) -> None:
    async with (
        served(Windlass(url, admin_token="static-admin-token")) as one,
        served(Windlass(url, admin_token="static-admin-token")) as other,
    ):
        await one.ask("POST", "/api/v1/lanes/slow/pause")
        for path in ("/api/v1/lanes", "/api/v1/settings", "/api/v1/sources"):
            assert (await one.ask("GET", path)).json() == (await other.ask("GET", path)).json()
        assert (
            await other.client.get("/api/v1/lanes", headers={"authorization": f"Bearer {one.tokens[Role.VIEWER]}"})
        ).status_code == 200
        login = await one.client.get(f"/login?code={one.server.credentials.new_code()}")
        cookie = login.headers["set-cookie"].partition(";")[0]
        assert (await other.client.get("/api/v1/session", headers={"cookie": cookie})).json()["role"] == "admin"


async def test_an_application_keeps_up_without_a_worker(url: str) -> None:
    async with Windlass(url, accept_unknown=True) as app, app.keeping():
        job = await app.enqueue("later", delay="100ms")
        async with asyncio.timeout(10):
            while (await app.get(job.id)).state != "pending":  # noqa: ASYNC110 - another process could have done it
                await asyncio.sleep(0.02)


@pytest.mark.parametrize(("trusted", "is_secure"), [(None, False), ("127.0.0.1", True), ("10.9.9.9", False)])
def test_only_a_trusted_proxy_is_believed(tmp_path: Path, trusted: str | None, is_secure: bool) -> None:  # noqa: FBT001 - a case
    path = tmp_path / "windlass.db"
    migrate_sqlite(path)
    app = Windlass(f"sqlite:///{path}", admin_token="static-admin-token", trusted_proxies=trusted)
    headers = {"x-forwarded-proto": "https", "x-forwarded-for": "192.0.2.7"}
    with listening(app) as port, httpx2.Client(base_url=f"http://127.0.0.1:{port}", headers=headers) as client:
        answer = client.post("/login", data={"token": "static-admin-token"})
        assert (answer.status_code, "Secure" in answer.headers["set-cookie"]) == (303, is_secure)
        client.get("/api/v1/lanes", headers={"cookie": ""})
        give_up = time.monotonic() + 10
        while not (refused := client.get("/api/v1/audit?action=refuse", headers=BEARER).json()["audit"]):
            assert time.monotonic() < give_up
        assert [line["details"]["address"] for line in refused] == ["192.0.2.7" if is_secure else "127.0.0.1"]
