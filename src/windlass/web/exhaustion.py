"""What a server does when the process may open no more files: log rarely, and close connections."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from windlass.telemetry import LogThrottle
from windlass.web.connections import Connections

log = logging.getLogger("windlass.web")

_NO_FILES = "socket.accept() out of system resource"
"""What asyncio logs; before Python 3.12 a thousand times a second, each with a stack trace."""
_LOG_EVERY_S = 30.0
_DROP_EVERY_S = 0.5
_DROPPED = 16


class Exhaustion:
    """Counts connections that could not be accepted; asyncio itself stops accepting for a second after each."""

    def __init__(self, connections: Connections, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        """Make room among the `connections`."""
        self._connections = connections
        self._log = LogThrottle(_LOG_EVERY_S, monotonic)
        self._drop = LogThrottle(_DROP_EVERY_S, monotonic)

    @contextmanager
    def heard(self) -> Iterator[None]:
        """Listen to the running loop for as long as the block lasts."""
        loop = asyncio.get_running_loop()
        before = loop.get_exception_handler()

        def hear(where: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
            if context.get("message") == _NO_FILES:
                self.refused(context.get("exception"))
            elif before is None:
                where.default_exception_handler(context)
            else:
                before(where, context)

        loop.set_exception_handler(hear)
        try:
            yield
        finally:
            loop.set_exception_handler(before)

    def refused(self, error: object) -> None:
        """End some connections that wait, and log it once in a while."""
        if self._drop.is_due():
            self._connections.make_room(_DROPPED)
        if self._log.is_due():
            log.error("a connection cannot be accepted: %s; waiting ones are closed to make room. Raise `ulimit -n`", error)
