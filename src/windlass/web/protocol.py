"""A connection that must say what it wants within a while: slow or silent clients make room for others."""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from windlass.web.limits import Limits

_VERSIONS = frozenset({"1.0", "1.1"})


class GuardedProtocol(HttpToolsProtocol):
    """HTTP/1.1 with bounds on the time and size of headers, on the time for reading the answer, and on how many may be open."""

    limits: ClassVar[Limits] = Limits()
    waiting: ClassVar[dict[GuardedProtocol, None]] = {}
    """Connections between requests or before their first, the longest waiting first."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Wait for a connection."""
        super().__init__(*args, **kwargs)
        self._deadline: asyncio.TimerHandle | None = None
        self._stalled: asyncio.TimerHandle | None = None
        self._unread = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as the parent has it
        """Give the client its time; one connection too many ends the one that has waited longest."""
        super().connection_made(transport)
        self._start_waiting()
        if len(self.connections) > self.limits.connections:
            next(iter(self.waiting)).transport.abort()

    @property
    def _is_asked(self) -> bool:
        """Whether a request has come whose answer is not out."""
        return self.cycle is not None and not self.cycle.response_complete

    def data_received(self, data: bytes) -> None:
        """Read on; headers that have begun must end in time, and within their size."""
        super().data_received(data)
        if self._is_asked:
            self._unread = 0
            self._stop_waiting()
            return
        if self.transport.is_closing():
            return
        self._unread += len(data)
        if self._unread > self.limits.header_bytes:
            self.send_400_response("The headers are too large.")
        elif self._deadline is None:
            self._start_waiting()

    def on_headers_complete(self) -> None:
        """Have the answer's head and body sent as one packet; the parser also takes versions that have no headers at all."""
        if self.parser.get_http_version() not in _VERSIONS:
            raise ValueError("not a version of HTTP that is spoken here")
        super().on_headers_complete()
        self.cycle.transport = cast("asyncio.Transport", Joined(self.transport, self.loop))

    def on_response_complete(self) -> None:
        """Count the connection as waiting again; the parent closes it when it idles."""
        super().on_response_complete()
        if not self._is_asked and not self.transport.is_closing():
            self.waiting[self] = None

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._stop_waiting()
        self.resume_writing()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Give a client that does not read its time; what waits for it is memory of ours."""
        super().pause_writing()
        self._stalled = self.loop.call_later(self.limits.answer_within.total_seconds(), self.transport.abort)

    def resume_writing(self) -> None:
        """Go on: the client has read."""
        super().resume_writing()
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None

    def _start_waiting(self) -> None:
        self.waiting[self] = None
        self._deadline = self.loop.call_later(self.limits.headers_within.total_seconds(), self.transport.abort)

    def _stop_waiting(self) -> None:
        self.waiting.pop(self, None)
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


class Joined:
    """A transport that sends what is written in one turn of the loop together: a second packet would wake the client twice."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        """Hold nothing yet."""
        self._transport = transport
        self._loop = loop
        self._held: bytes | None = None

    def write(self, data: bytes) -> None:
        """Hold the first piece until the next one, or until the end of this turn."""
        if self._held is None:
            self._held = data
            self._loop.call_soon(self.flush)
        else:
            held, self._held = self._held, b""
            self._transport.write(held + data)

    def flush(self) -> None:
        """Send what is held."""
        if self._held:
            self._transport.write(self._held)
        self._held = None

    def close(self) -> None:
        """Close after what is held."""
        self.flush()
        self._transport.close()

    def __getattr__(self, name: str) -> Any:
        """Be the transport in all else."""
        return getattr(self._transport, name)


def protocol_with(limits: Limits) -> type[GuardedProtocol]:
    """Make the protocol of one server."""
    return type("Protocol", (GuardedProtocol,), {"limits": limits, "waiting": {}})
