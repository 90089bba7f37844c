"""Listens on a socket for a server; what to do about signals is left to the caller."""

from __future__ import annotations

import asyncio
import logging
import resource
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from windlass.errors import ConfigError
from windlass.web.connections import Connections
from windlass.web.exhaustion import Exhaustion
from windlass.web.protocol import protocol_with
from windlass.web.server import Server

_BACKLOG = 1024
_LEAST_CONNECTIONS = 16


def bind(host: str, port: int) -> socket.socket:
    """Take a port; 0 is any that is free. Raises ConfigError when it is not to be had."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        bound = socket.socket(family, kind, protocol)
        try:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            bound.bind(address)
            # From here on clients wait to be answered and are not turned away, however long the start takes.
            bound.listen(_BACKLOG)
        except OSError:
            bound.close()
            raise
    except OSError as error:
        raise ConfigError(f"cannot listen on {host} port {port}: {error.strerror or error}") from error
    return bound


class HttpListener(uvicorn.Server):
    """Runs a server on a socket until asked to stop."""

    def __init__(self, server: Server, bound: socket.socket) -> None:
        """Listen nowhere yet."""
        settings, limits = server.app.settings, server.limits
        connections = Connections(
            min(limits.connections, _affordable()), limits.connections_of_address, settings.trusted_proxies or ()
        )
        config = uvicorn.Config(
            server,
            http=protocol_with(limits, connections),
            ws="none",
            lifespan="on",
            log_config=None,
            log_level="warning",
            access_log=False,
            server_header=False,
            # By the connection: the parent would have to look at the clock all the time.
            date_header=False,
            proxy_headers=settings.trusted_proxies is not None,
            forwarded_allow_ips=list(settings.trusted_proxies or ()),
            backlog=_BACKLOG,
            timeout_keep_alive=int(limits.idle.total_seconds()),
            timeout_graceful_shutdown=max(1, int(settings.grace.total_seconds())),
        )
        super().__init__(config)
        self._windlass = server
        self._bound = bound
        self._exhaustion = Exhaustion(connections)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._told = asyncio.Event()

    async def listen(self) -> None:
        """Answer until `stop`; then finish what is under way within the grace."""
        # Left there: what is cut off when the event loop ends is logged after this.
        logging.getLogger("uvicorn.error").addFilter(_is_no_cancellation)
        with self._exhaustion.heard():
            await self.serve(sockets=[self._bound])

    def stop(self) -> None:
        """Take no more requests and end; a second call ends at once. From any thread."""
        self.force_exit = self.should_exit
        self.should_exit = True
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._told.set)

    async def main_loop(self) -> None:
        """Wait for `stop`; the parent looks ten times a second, and an idle process should not wake for that."""
        self._loop = asyncio.get_running_loop()
        try:
            if not self.should_exit:
                await self._told.wait()
        finally:
            self._loop = None

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End streams first: they would be waited for."""
        self._windlass.stopping.set()
        await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals alone: uvicorn would raise them again and end the process before the upkeep has stopped."""
        yield


def _is_no_cancellation(record: logging.LogRecord) -> bool:
    """Leave out what a second signal cuts off: uvicorn logs each as an error, with its trace."""
    return record.exc_info is None or record.exc_info[0] is not asyncio.CancelledError


def _affordable() -> int:
    """Return how many connections leave half of the files that this process may open to the rest of it."""
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return sys.maxsize if most == resource.RLIM_INFINITY else max(_LEAST_CONNECTIONS, most // 2)
