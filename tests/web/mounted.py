"""A FastAPI application of somebody else, with the server below a path of it."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import uvicorn
from fastapi import FastAPI

from tests.web.serving import wait_for_port
from windlass import Windlass
from windlass.web.listener import bind
from windlass.web.server import build_server

PREFIX = "/ops/queue"


def host_of(app: Windlass) -> FastAPI:
    """Make an application that shows the dashboard below `PREFIX`."""
    server = build_server(app)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with app, server.running():
            yield

    host = FastAPI(lifespan=lifespan)
    host.mount(PREFIX, server)
    host.add_api_route("/healthz", lambda: "ok")
    return host


@contextmanager
def mounted(app: Windlass) -> Iterator[str]:
    """Serve such an application with plain uvicorn, and give the address of the dashboard."""
    bound = bind("127.0.0.1", 0)
    port = bound.getsockname()[1]
    server = uvicorn.Server(uvicorn.Config(host_of(app), log_level="error"))
    thread = threading.Thread(target=server.run, args=([bound],), daemon=True)
    thread.start()
    try:
        wait_for_port(port)
        yield f"http://127.0.0.1:{port}{PREFIX}"
    finally:
        server.should_exit = True
        thread.join(30)
        assert not thread.is_alive()
