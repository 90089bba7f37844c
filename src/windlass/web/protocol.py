"""A connection that must say what it wants within a while: slow or silent clients make room for others."""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from windlass.web.limits import Limits


class GuardedProtocol(H11Protocol):
    """HTTP/1.1 with bounds on the time for headers and for reading the answer, and on how many connections may be open."""

    limits: ClassVar[Limits] = Limits()
    waiting: ClassVar[dict[GuardedProtocol, None]] = {}
    """Connections between requests or before their first, the longest waiting first."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Wait for a connection."""
        super().__init__(*args, **kwargs)
        self._deadline: asyncio.TimerHandle | None = None
        self._stalled: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as the parent has it
        """Give the client its time; one connection too many ends the one that has waited longest."""
        super().connection_made(transport)
        self._start_waiting()
        if len(self.connections) > self.limits.connections:
            next(iter(self.waiting)).transport.abort()

    def data_received(self, data: bytes) -> None:
        """Read on; headers that have begun must end in time."""
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._stop_waiting()
        elif self._deadline is None and not self.transport.is_closing():
            self._start_waiting()

    def on_response_complete(self) -> None:
        """Count the connection as waiting again; the parent closes it when it idles."""
        super().on_response_complete()
        if self.conn.their_state is h11.IDLE and not self.transport.is_closing():
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


def protocol_with(limits: Limits) -> type[GuardedProtocol]:
    """Make the protocol of one server."""
    return type("Protocol", (GuardedProtocol,), {"limits": limits, "waiting": {}})
