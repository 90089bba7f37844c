"""The server: the table of routes, and what it keeps beside answering."""

from __future__ import annotations

import asyncio
import logging
import re
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from functools import cached_property
from itertools import count
from typing import Any
from urllib.parse import urlsplit

from fastapi import Request, Response

from windlass.app import Windlass
from windlass.core.known_task import declared_task
from windlass.telemetry import LogThrottle
from windlass.web.background_writes import BackgroundWrites
from windlass.web.changes import Changes
from windlass.web.credentials import Credentials
from windlass.web.errors import Refusal
from windlass.web.exchange import Asgi, Exchange, Receive, Scope, Send
from windlass.web.hosts import Hosts
from windlass.web.limits import HttpLimits
from windlass.web.mount import base_of
from windlass.web.openapi import document, operation, query_names
from windlass.web.probes import Readiness
from windlass.web.pull_queue import PullQueue
from windlass.web.pull_settings import PullSettingsCache
from windlass.web.pull_worker_seen import PullWorkersSeen
from windlass.web.rate_limit import RateLimit
from windlass.web.read_queue import ReadQueue
from windlass.web.route import Route
from windlass.web.router import RouteMatch, Router
from windlass.web.routes import ROUTES
from windlass.web.snapshot import SnapshotCache

log = logging.getLogger("windlass.web")


_REQUEST_ID = re.compile(rb"[A-Za-z0-9._:/+=-]{1,128}")


class RoutedHandler:
    """A row of the table with what answers for it."""

    def __init__(self, route: Route) -> None:
        """Make the rest when it is first asked for."""
        self.route = route

    @cached_property
    def answer(self) -> Asgi:
        """What answers."""
        return operation(self.route).app if self.route.hot is None else plain(self.route.hot)

    @cached_property
    def query(self) -> frozenset[str]:
        """The names of its query parameters."""
        return query_names(operation(self.route))


class Server:
    """An ASGI application. Every request passes here: host, credentials, role, size, time, then its route."""

    def __init__(self, app: Windlass, routes: Iterable[Route] = ROUTES, *, limits: HttpLimits | None = None) -> None:
        """Serve `app`; raises ConfigError for credentials that cannot be used."""
        settings = app.settings
        self.app = app
        self.routes = tuple(routes)
        self.limits = limits or HttpLimits(
            body_bytes=settings.max_body_bytes,
            held_body_bytes=max(HttpLimits().held_body_bytes, 2 * settings.max_body_bytes),
            connections_of_address=settings.connections_per_address,
        )
        self.notes = BackgroundWrites(app, self.limits)
        self.credentials = Credentials(app, self.notes, self.limits)
        self.profiles = settings.profiles
        """What jobs do when their enqueuer set nothing; worked out once."""
        self.logins = RateLimit(self.limits.failed_logins)
        """Failures on the login page."""
        self.stopping = asyncio.Event()
        """Streams end when it is set: a server cannot stop while a stream is open."""
        self.readiness = Readiness(app, self.stopping)
        self.reader = app.bounded(self.limits.read_for)
        """The application for costly reads."""
        self.snapshots = SnapshotCache(self.reader)
        self.changes = Changes(app, self.stopping, most=self.limits.streams)
        self.public_base = base_of(settings.public_url)
        """The path below which a proxy shows the server."""
        public = () if settings.public_url is None else (urlsplit(settings.public_url).hostname or "",)
        self._hosts = Hosts(settings.host, (*(settings.allowed_hosts or ()), *public))
        self.pull_settings = PullSettingsCache(app)
        self.pull_queue = PullQueue(app, self.pull_settings, self.stopping)
        self.workers_seen = PullWorkersSeen(app)
        self._table = Router((route.method, route.path, RoutedHandler(route)) for route in self.routes)
        self.read_queue = ReadQueue(
            self.limits.costly_reads, self.limits.waiting_reads, self.limits.read_within.total_seconds(), app.rng
        )
        self.unavailable = LogThrottle(1.0)
        """Whether it is time to log another 503."""
        self._exports = 0
        self.held_bytes = 0
        """How much of large bodies is in memory."""
        self._prefix = secrets.token_hex(4)
        self._numbers = count(1)
        # FastAPI asks for a place to close uploads in; there are none.
        self._uploads = AsyncExitStack()

    @property
    def openapi(self) -> dict[str, Any]:
        """The document of the API, written when it is first asked for."""
        return document(self.routes)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Do what the server does beside answering, for as long as the block lasts."""
        # Pull workers cannot declare which breaker a task has, and without one no report counts and no gate closes.
        await self.app.known_tasks.declare([declared_task(spec) for spec in self.app.registry if spec.breaker is not None])
        async with (
            self.notes.writing(),
            self.changes.watching(),
            self.workers_seen.writing(),
            self.pull_queue.serving(),
        ):
            yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer as ASGI asks."""
        match scope["type"]:
            case "http":
                await Exchange(self, scope, send).answer(receive)
            case "lifespan":
                await self._live(receive, send)
            case "websocket":
                await send({"type": "websocket.close", "code": 1008})

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        async with self.running():
            await send({"type": "lifespan.startup.complete"})
            await receive()
        await send({"type": "lifespan.shutdown.complete"})

    def find(self, raw_path: bytes) -> RouteMatch[RoutedHandler] | None:
        """Look a path up in the table."""
        return self._table.find(raw_path)

    def hears(self, header: bytes | None, local_address: str | None) -> bool:
        """Whether a Host header is one of ours."""
        return self._hosts.allow(header, local_address)

    def name_request(self, given: bytes | None) -> str:
        """Take over a sane request id, or make one."""
        if given is not None and _REQUEST_ID.fullmatch(given):
            return given.decode("ascii")
        return f"{self._prefix}-{next(self._numbers)}"

    @contextmanager
    def exporting(self) -> Iterator[None]:
        """Count a download; raises a Refusal with 503 for one too many."""
        if self._exports >= self.limits.exports:
            raise Refusal(503, "too many downloads are under way; try again later", {"retry-after": "5"})
        self._exports += 1
        try:
            yield
        finally:
            self._exports -= 1

    @property
    def uploads(self) -> AsyncExitStack:
        """Where FastAPI would close uploads."""
        return self._uploads


def plain(hot: Callable[[Request], Awaitable[Response]]) -> Asgi:
    """Answer with a function from request to response, and nothing in between."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        response = await hot(Request(scope, receive, send))
        await response(scope, receive, send)

    return answer


def build_server(app: Windlass, *, limits: HttpLimits | None = None) -> Server:
    """Make the server of an application: every face, every rule of access."""
    return Server(app, limits=limits)
