"""A connection whose request must be complete within a while: slow or idle clients make room for others."""

from __future__ import annotations

import asyncio
import json
import time
from email.utils import formatdate
from functools import lru_cache
from typing import Any, ClassVar, cast

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from windlass.web.connections import CONNECTION, UNKNOWN, Connections
from windlass.web.limits import HttpLimits
from windlass.web.rate_limit import network_of

_VERSIONS = frozenset({"1.0", "1.1"})
_HOP_BY_HOP = frozenset({b"connection", b"upgrade", b"http2-settings"})
_BODY_PER_FRAMING = 4
"""How many bytes of a body come with one of framing, at least: a body in tiny chunks costs more than it brings."""


class GuardedProtocol(HttpToolsProtocol):
    """HTTP/1.1 with bounds on the time and size of headers, on the time for reading the answer, and on how many may be open."""

    limits: ClassVar[HttpLimits] = HttpLimits()
    open: ClassVar[Connections]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Wait for a connection."""
        super().__init__(*args, **kwargs)
        self._deadline: asyncio.TimerHandle | None = None
        self._stalled: asyncio.TimerHandle | None = None
        self._framing = 0
        """Bytes of the request that is being read which are not its body."""
        self._body_bytes = 0
        self._is_gone = False
        self.address = self.network = UNKNOWN

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as the parent has it
        """Start the client's time limit; one connection too many ends the one that has waited longest."""
        super().connection_made(transport)
        self.address = self.client[0] if self.client else UNKNOWN
        self.network = network_of(self.address)
        self._set_deadline()
        self.open.opened(self)

    def drop(self) -> None:
        """End the connection at once."""
        self.transport.abort()

    def vouch(self) -> None:
        """Count the client as one with a valid credential."""
        self.open.vouch(self)

    @property
    def _is_asked(self) -> bool:
        """Whether a request has come whose answer is not out; its body may still be on the way."""
        return self.cycle is not None and not self.cycle.response_complete

    @property
    def _has_work(self) -> bool:
        """Whether the client has sent a whole request, and reads."""
        return self._is_asked and not self.cycle.more_body and not self.flow.write_paused

    def data_received(self, data: bytes) -> None:
        """Read on; headers that have begun must end in time, and within their size."""
        self._unset_keepalive_if_required()
        self._framing += len(data)
        try:
            self._feed(data)
        except httptools.HttpParserError:
            self.send_400_response("this is not a request that can be read")
            return
        if self.transport.is_closing():
            return
        if self._framing > self.limits.header_bytes + self._body_bytes // _BODY_PER_FRAMING:
            self._refuse_framing()
        elif self._is_asked:
            # From here on the server has a deadline for the body, and for its own answer.
            self._unset_deadline()
            self._sort()
        elif self._deadline is None:
            self._set_deadline()

    def _feed(self, data: bytes) -> None:
        while True:
            try:
                self.parser.feed_data(data)
            except httptools.HttpParserUpgrade as upgrade:
                # The parser skips the body of such a request and would take it for the next one: it is read again as a plain one.
                data = self._plain_head() + data[upgrade.args[0] :]
                self.parser = httptools.HttpRequestParser(self)
            else:
                return

    def _plain_head(self) -> bytes:
        """Write the head of the request that is being read as that of one which asks for no other protocol."""
        line = b"%s %s HTTP/%s" % (self.parser.get_method(), self.url, self.parser.get_http_version().encode())
        kept = [(name, value) for name, value in self.headers if name not in _HOP_BY_HOP]
        if any(name == b"connection" and b"close" in value.lower() for name, value in self.headers):
            kept.append((b"connection", b"close"))
        return b"\r\n".join([line, *(b"%s: %s" % pair for pair in kept), b"", b""])

    def send_400_response(self, msg: str) -> None:
        """Refuse what cannot be read, in the form of every refusal, and hang up."""
        body = json.dumps({"error": msg}).encode()
        head = b"HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\ncontent-length: %d\r\nconnection: close\r\n\r\n"
        self.transport.write(head % len(body) + body)
        self.transport.close()

    def _refuse_framing(self) -> None:
        """Turn away a client that sends headers, trailers or the sizes of chunks without end."""
        if self._is_asked:
            self.transport.abort()
        else:
            self.send_400_response(f"headers: must not be larger than {self.limits.header_bytes} bytes")

    def on_headers_complete(self) -> None:
        """Have the answer's head and body sent as one packet; the parser also takes versions that have no headers at all."""
        if self.parser.get_http_version() not in _VERSIONS or self.parser.get_method() == b"CONNECT":
            raise ValueError("not a request that is understood here")
        self._check_transfer()
        if not self.parser.should_upgrade():
            self.scope[CONNECTION] = self  # type: ignore[literal-required]  # for our own server
            super().on_headers_complete()
            self.cycle.transport = cast("asyncio.Transport", Joined(self.transport, self.loop))
            self.cycle.default_headers = _date_header(int(time.time()))  # noqa: TID251 - the date of an answer is this machine's

    def _check_transfer(self) -> None:
        """Refuse requests whose body a proxy may give another length."""
        encodings = [value.strip().lower() for name, value in self.headers if name == b"transfer-encoding"]
        lengths = [value for name, value in self.headers if name == b"content-length"]
        if encodings and (encodings != [b"chunked"] or lengths or self.parser.get_http_version() != "1.1"):
            raise ValueError("transfer-encoding: must be chunked, once, and without a content-length")
        if len(lengths) > 1:
            raise ValueError("content-length: must be sent once")

    def on_body(self, body: bytes) -> None:
        """Take a part of the body."""
        self._framing -= len(body)
        self._body_bytes += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """End a request, unless it has to be read again as a plain one."""
        if self.parser.should_upgrade():
            return
        self._framing = self._body_bytes = 0
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Count the connection as waiting again; the parent closes it when it idles."""
        super().on_response_complete()
        self._sort()
        if self.transport.is_closing() and not self._is_gone:
            # What is left to send may wait for a client that never reads it.
            self._set_deadline()

    def connection_lost(self, exc: Exception | None) -> None:
        """Remove the connection."""
        self._is_gone = True
        self._unset_deadline()
        self.resume_writing()
        self.open.closed(self)
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Start the time limit of a client that does not read: what waits for it takes our memory."""
        super().pause_writing()
        self._stalled = self.loop.call_later(self.limits.answer_within.total_seconds(), self.transport.abort)
        self.open.waits(self)

    def resume_writing(self) -> None:
        """Go on: the client has read."""
        super().resume_writing()
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None
        self._sort()

    def _sort(self) -> None:
        """Note whether the request can be handled now."""
        if self._is_gone:
            return
        if self._has_work and not self.transport.is_closing():
            self.open.works(self)
        else:
            self.open.waits(self)

    def _set_deadline(self) -> None:
        self._unset_deadline()
        self._deadline = self.loop.call_later(self.limits.headers_within.total_seconds(), self.transport.abort)

    def _unset_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


@lru_cache(maxsize=1)
def _date_header(second: int) -> list[tuple[bytes, bytes]]:
    return [(b"date", formatdate(second, usegmt=True).encode())]


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


def protocol_with(limits: HttpLimits, connections: Connections) -> type[GuardedProtocol]:
    """Make the protocol of one server."""
    return type("Protocol", (GuardedProtocol,), {"limits": limits, "open": connections})
