"""A site of two hundred pages and every kind of trouble, which counts what it is asked for."""

from __future__ import annotations

import asyncio
from collections import Counter

from tests.support.local_site import Seen, Site, Write, reply

SECTIONS = 20
"""Links of the first page; each leads to eight or nine more."""
PAGES = 200
SLOW_S = 0.05
ROBOTS = b"User-agent: *\nDisallow: /private\nAllow: /\n\nUser-agent: otherbot\nDisallow: /\n"
TROUBLE = ("/loop-a", "/big", "/broken", "/private/x", "/gone", "/boom", "/file.pdf", "/old", "/away", "/slow", "/quiet")


def html(title: str, links: tuple[str, ...] = (), text: str = "") -> bytes:
    anchors = "".join(f'<li><a href="{link}">to {link}</a>' for link in links)
    return f"<!doctype html><html><head><title>{title}</title></head><body><p>{text}</p><ul>{anchors}</ul>".encode()


def page(number: int) -> bytes:
    """Write one of the two hundred; number 0 is the first."""
    if number == 0:
        links = tuple(f"/p/{n}#part" for n in range(1, SECTIONS + 1))
        outside = ("http://elsewhere.example/", "mailto:ada@example.org", "javascript:void(0)", "/p/1?", "//[broken")
        return html("Home of the site", (*links, *outside, *TROUBLE), "welcome")
    below = tuple(f"/p/{n}" for n in range(SECTIONS + number, PAGES, SECTIONS)) if number <= SECTIONS else ()
    return html(f"Page {number}", (*below, "/", "../p/1"), f"the number is n{number}")


class TestSite:
    """Answers, and remembers what for."""

    __test__ = False

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        self.status = 200
        """Of the first page."""
        self.robots = reply(200, ROBOTS, content_type="text/plain")
        self.changed: set[str] = set()
        self.conditional = False
        self.hold: asyncio.Event | None = None
        """While it is there and not set, /slow does not answer."""

    @property
    def pages(self) -> Counter[str]:
        """How often each page was asked for, without the robots.txt."""
        return Counter({target: count for target, count in self.asked.items() if target != "/robots.txt"})

    async def answer(self, seen: Seen, write: Write) -> None:
        self.asked[seen.target] += 1
        await write(await self._answer(seen))

    async def _answer(self, seen: Seen) -> bytes:  # noqa: PLR0911 - a table of answers
        match seen.target.strip("/").split("/"):
            case ["robots.txt"]:
                return self.robots
            case [""] if self.status != 200:
                return reply(self.status, b"no", retry_after="7")
            case [""]:
                return self._kept(seen, page(0))
            case ["p", number] if number.isdigit():
                return self._kept(seen, page(int(number)))
            case ["p", number]:
                return self._kept(seen, page(int(number.rstrip("?"))))
            case ["slow"]:
                await (asyncio.sleep(SLOW_S) if self.hold is None else self.hold.wait())
                return reply(200, html("Slow"), content_type="text/html")
            case [other]:
                return self._trouble(other)
        return reply(404)

    def _kept(self, seen: Seen, body: bytes) -> bytes:
        mark = '"2"' if seen.target in self.changed else '"1"'
        if self.conditional and seen.headers.get("if-none-match") == mark:
            return reply(304, etag=mark)
        extra = b"<p>news" if seen.target in self.changed else b""
        return reply(200, body + extra, content_type="text/html; charset=utf-8", etag=mark)

    def _trouble(self, name: str) -> bytes:
        return {
            "loop-a": reply(302, location="/loop-b"),
            "loop-b": reply(302, location="/loop-a"),
            "big": reply(200, b"<p>x" * 1_310_720, content_type="text/html"),
            "broken": reply(
                200, b"<title>Brok&eacute;n<p <b <a href='/p/2>x<!-- \xff\0 <a href=/p/3 <script>", content_type="text/html"
            ),
            "gone": reply(410),
            "boom": reply(500),
            "file.pdf": reply(200, b"%PDF", content_type="application/pdf"),
            "old": reply(301, location="/p/1"),
            "away": reply(301, location="http://elsewhere.example/"),
            "quiet": reply(200, b"<meta name=robots content='noindex, nofollow'><a href=/hidden>x", content_type="text/html"),
        }.get(name, reply(404))


__all__ = ["PAGES", "Site", "TestSite"]
