"""A real HTTP server for tests, which answers exactly the bytes it is told to."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Seen:
    """A request as it arrived."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes


Write = Callable[[bytes], Awaitable[None]]
Answering = Callable[[Seen, Write], Awaitable[None]]


@dataclass
class Site:
    """A server on a free port, with what it was asked."""

    port: int
    scheme: str = "http"
    seen: list[Seen] = field(default_factory=list)

    def url(self, path: str = "/", host: str = "127.0.0.1") -> str:
        return f"{self.scheme}://{host}:{self.port}{path}"


def reply(status: int = 200, body: bytes = b"", **headers: str) -> bytes:
    """Write a whole answer; `content_type="text/html"` becomes a header."""
    lines = [f"HTTP/1.1 {status} Words"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in {"content_length": str(len(body)), **headers}.items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


@asynccontextmanager
async def serve(answer: Answering, *, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1") -> AsyncIterator[Site]:
    """Answer every request with what `answer` writes, one request per connection."""
    site = Site(0, "https" if tls else "http")
    running: set[asyncio.Task[None]] = set()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        running.add(task)

        async def write(data: bytes) -> None:
            writer.write(data)
            await writer.drain()

        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
                seen = await _read(reader)
                site.seen.append(seen)
                await answer(seen, write)
        except asyncio.CancelledError:
            # A server that ends takes its open answers with it.
            pass
        finally:
            running.discard(task)
            writer.close()
            with suppress(ConnectionError, ssl.SSLError):
                await writer.wait_closed()

    server = await asyncio.start_server(talk, host, 0, ssl=tls)
    site.port = server.sockets[0].getsockname()[1]
    try:
        yield site
    finally:
        server.close()
        for task in [*running]:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


async def _read(reader: asyncio.StreamReader) -> Seen:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.rstrip("\r\n").split("\r\n")
    method, target, _ = first.split(" ")
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Seen(method, target, headers, body)
