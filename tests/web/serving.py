"""Servers for tests: in this process, or on a real socket in a thread."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import httpx2

from windlass import Windlass
from windlass.core.access import NewToken, Role
from windlass.web.limits import HttpLimits
from windlass.web.listener import HttpListener, bind
from windlass.web.route import Route
from windlass.web.routes import ROUTES
from windlass.web.server import Server, build_server

BASE = "http://127.0.0.1"


@dataclass
class Served:
    """A server, a client without credentials, and a token for every role."""

    app: Windlass
    server: Server
    client: httpx2.AsyncClient
    tokens: dict[Role, str] = field(default_factory=dict)

    async def ask(self, method: str, path: str, role: Role | None = Role.ADMIN, **options: Any) -> httpx2.Response:
        headers = {**options.pop("headers", {})}
        if role is not None:
            headers["authorization"] = f"Bearer {self.tokens[role]}"
        return await self.client.request(method, path, headers=headers, **options)


@asynccontextmanager
async def served(app: Windlass, limits: HttpLimits | None = None) -> AsyncIterator[Served]:
    server = build_server(app, limits=limits)
    transport = httpx2.ASGITransport(app=server)
    async with app, server.running(), httpx2.AsyncClient(transport=transport, base_url=BASE) as client:
        tokens = (await app.store()).tokens
        yield Served(
            app, server, client, {role: (await tokens.mint(NewToken(name=role.value, role=role))).secret for role in Role}
        )


@contextmanager
def listening(
    app: Windlass, limits: HttpLimits | None = None, more: tuple[Route, ...] = (), *, has_upkeep: bool = False, port: int = 0
) -> Iterator[int]:
    """Run a server on a socket in a thread, and give its port."""
    server = Server(app, (*ROUTES, *more), limits=limits)
    bound = bind("127.0.0.1", port)
    listener = HttpListener(server, bound)
    failures: list[BaseException] = []

    async def run() -> None:
        async with app, app.keeping() if has_upkeep else nullcontext():
            await listener.listen()

    def work() -> None:
        try:
            asyncio.run(run())
        except BaseException as error:  # noqa: BLE001 - told to the test
            failures.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        wait_for_port(bound.getsockname()[1])
        yield bound.getsockname()[1]
    finally:
        listener.stop()
        thread.join(30)
        assert not thread.is_alive()
        assert not failures, failures


def wait_for_port(port: int) -> None:
    for _ in range(500):
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
                connection.sendall(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
                if connection.recv(12) == b"HTTP/1.1 200":
                    return
        except OSError:
            pass
        threading.Event().wait(0.02)
    raise AssertionError("the server did not come up")
