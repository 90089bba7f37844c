"""A web server on this machine whose feeds behave as the tests want."""

from __future__ import annotations

import asyncio
import gzip
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

RSS = """<?xml version="1.0"?><rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom"
 xmlns:sy="http://purl.org/rss/1.0/modules/syndication/"><channel>
<title>{title}</title><link>https://example.org/</link><description>d</description>{extra}
{items}</channel></rss>"""
ITEM = "<item><guid>{guid}</guid><title>Entry {guid}</title><link>https://example.org/{guid}</link></item>"


class Reply(NamedTuple):
    """What the site answers; without a status it hangs up, with 0 it never answers."""

    status: int | None = 200
    body: bytes = b""
    headers: Mapping[str, str] = {}


class Asked(NamedTuple):
    """A request as the site saw it."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


Answer = Callable[[Asked], Reply]


def rss(*guids: object, title: str = "News", extra: str = "") -> bytes:
    """Write a feed, the newest entry first as publishers do."""
    items = "".join(ITEM.format(guid=guid) for guid in reversed(guids))
    return RSS.format(title=title, extra=extra, items=items).encode()


def feed(*guids: object, extra: str = "", **headers: str) -> Answer:
    """Answer with a feed; `etag=…` makes it conditional."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}

    def answer(asked: Asked) -> Reply:
        if "etag" in named and asked.headers.get("if-none-match") == named["etag"]:
            return Reply(304, b"", named)
        return Reply(200, rss(*guids, extra=extra), named)

    return answer


def zipped(*guids: object) -> Answer:
    return lambda _: Reply(200, gzip.compress(rss(*guids)), {"content-encoding": "gzip"})


def status(code: int, **headers: str) -> Answer:
    return lambda _: Reply(code, b"no", {name.replace("_", "-"): value for name, value in headers.items()})


def garbage(_asked: Asked) -> Reply:
    return Reply(200, b"<html><body>\x00\xff<p>not & a feed", {"content-type": "text/html"})


def hang_up(_asked: Asked) -> Reply:
    return Reply(None)


def silence(_asked: Asked) -> Reply:
    return Reply(0)


@dataclass
class Site:
    """The pages by path, and what was asked for."""

    base: str = ""
    pages: dict[str, Answer] = field(default_factory=dict)
    seen: list[Asked] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    def url(self, path: str) -> str:
        return self.base + path

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            asked = await _read(reader)
            self.seen.append(asked)
            self.counts[asked.path] += 1
            reply = self.pages.get(asked.path.partition("?")[0], status(404))(asked)
            if reply.status == 0:
                await reader.read()
            elif reply.status is not None:
                headers = {"content-length": str(len(reply.body)), "connection": "close", **reply.headers}
                lines = [f"HTTP/1.1 {reply.status} said", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
                writer.write("\r\n".join(lines).encode() + reply.body)
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError, ValueError):
            # The other side was killed, which is what some tests are about.
            pass
        finally:
            writer.close()


async def _read(reader: asyncio.StreamReader) -> Asked:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    method, path, _ = head[0].split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
    return Asked(method, path, headers, await reader.readexactly(int(headers.get("content-length", 0))))


@asynccontextmanager
async def a_site() -> AsyncIterator[Site]:
    """Serve for as long as the block lasts."""
    site = Site()
    server = await asyncio.start_server(site._serve, "127.0.0.1", 0, backlog=512)
    site.base = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield site
    finally:
        server.close()
