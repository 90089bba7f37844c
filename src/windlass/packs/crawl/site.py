"""Visits the addresses of a crawl, one after another."""

from __future__ import annotations

import asyncio
import json
from typing import NamedTuple

from windlass.core.crawl import Address, Visit
from windlass.core.source import MAX_URL
from windlass.packs.crawl.errors import CrawlRefused, PageGone, SiteUnavailable, asks_to_wait, wait_of
from windlass.packs.crawl.politeness import Politeness
from windlass.packs.crawl.reading import Reading, read_answer, site_links
from windlass.packs.crawl.robots import MAX_BYTES, Robots, RobotsBook
from windlass.packs.outgoing import LIMITS, Answer, Outgoing, OutgoingError, TooManyRedirects, Unreachable, Wanted
from windlass.packs.outgoing.url import WebUrl, join_url, parse_url

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_MOST_REDIRECTS = 5
_OK = 200
_REDIRECTED = 300
_UNCHANGED = 304
_GONE = frozenset({404, 410})
_PATIENCE = 5
_ACCEPT = "text/html, application/xhtml+xml;q=0.9, */*;q=0.1"


class _Fetched(NamedTuple):
    """Where an address led, and what was there."""

    url: WebUrl
    answer: Answer
    robots: Robots


class Site:
    """What one run of a crawl has learned of its site."""

    def __init__(self, sender: Outgoing, politeness: Politeness, *, pause_s: float, max_depth: int) -> None:
        """Send with `sender`, at least `pause_s` apart; links at `max_depth` are not followed."""
        self._sender = sender
        self._politeness = politeness
        self._pause_s = pause_s
        self._max_depth = max_depth
        self._robots = RobotsBook(self._ask_robots)
        self._failures = 0

    async def visit(self, address: Address) -> Visit:
        """Ask for an address. What is wrong with the first one ends the crawl; of the others it is noted.

        Raises SiteUnavailable when a retry may help, and another WindlassError when none can.
        """
        if address.is_start:
            return await self._visit(address)
        try:
            visit = await self._visit(address)
        except (CrawlRefused, SiteUnavailable, OutgoingError) as error:
            self._lose_patience(error)
            return Visit(address, address.url, error=str(error), is_gone=isinstance(error, PageGone))
        self._failures = 0
        return visit

    def _lose_patience(self, error: Exception) -> None:
        """Give up for now when a site fails again and again: asking for the rest would only make it worse."""
        self._failures = self._failures + 1 if isinstance(error, SiteUnavailable | Unreachable) else 0
        if self._failures >= _PATIENCE:
            raise SiteUnavailable(f"{self._failures} pages in a row could not be had, the last because {error}") from error

    async def _visit(self, address: Address) -> Visit:
        fetched = await self._follow(address)
        if fetched is None:
            return Visit(address, address.url, is_outside=True)
        url, answer, robots = fetched
        if answer.status == _UNCHANGED:
            links = site_links(url, url, json.loads(address.links or "[]"))
            kept = await asyncio.to_thread(lambda: tuple(filter(robots.allows, links)))
            return Visit(address, address.url, is_unchanged=True, links=self._within_depth(address, kept))
        _check_status(url, answer)
        page, links = await _read(fetched)
        return Visit(address, str(url), page=page, is_gone=page is None, links=self._within_depth(address, links))

    def _within_depth(self, address: Address, links: tuple[str, ...]) -> tuple[str, ...]:
        return links if address.depth < self._max_depth else ()

    async def _follow(self, address: Address) -> _Fetched | None:
        """Ask for an address and where it leads to; None when that is outside, or what robots are asked not to visit."""
        url = parse_url(address.url)
        passed: set[str] = set()
        while len(passed) <= _MOST_REDIRECTS:
            robots = await self._robots.of(url)
            if not robots.allows(str(url)):
                if address.is_start:
                    raise CrawlRefused(f"the robots.txt of {url.origin} does not allow {str(url)!r} to be crawled")
                return None
            answer = await self._ask(url, robots, {} if passed else _conditions(address))
            if answer.status not in _REDIRECTS or "location" not in answer.headers:
                return _Fetched(url, answer, robots)
            passed.add(str(url))
            target = join_url(url, answer.headers["location"])
            if len(str(target)) > MAX_URL or (target.authority != url.authority and not address.is_start):
                return None
            if str(target) in passed:
                raise TooManyRedirects(f"{address.url} redirects in a circle")
            url = target
        raise TooManyRedirects(f"{address.url} is still redirected after {_MOST_REDIRECTS} times")

    async def _ask(self, url: WebUrl, robots: Robots, headers: dict[str, str]) -> Answer:
        async with self._politeness.turn(url.host, robots.pause_s(self._pause_s)):
            return await self._sender.send("GET", str(url), headers={"accept": _ACCEPT, **headers}, follow=False)

    async def _ask_robots(self, address: str) -> Answer:
        async with self._politeness.turn(parse_url(address).host, self._pause_s):
            limits = LIMITS._replace(max_bytes=MAX_BYTES)
            return await self._sender.send("GET", address, limits=limits, wanted=Wanted.BEGINNING)


async def _read(fetched: _Fetched) -> Reading:
    """Read an answer; whatever is wrong with it is wrong with this page, now and later."""
    try:
        return await asyncio.to_thread(read_answer, fetched.url, fetched.answer, fetched.robots.allows)
    except Exception as error:
        raise CrawlRefused(f"{fetched.url} cannot be read: {type(error).__name__}: {error}") from error


def _conditions(address: Address) -> dict[str, str]:
    """Ask only for what has changed since the page was kept."""
    said = {"if-none-match": address.etag, "if-modified-since": address.last_modified}
    return {name: value for name, value in said.items() if value is not None}


def _check_status(url: WebUrl, answer: Answer) -> None:
    status = answer.status
    if status in _GONE:
        raise PageGone(f"{url} answers HTTP {status}: there is no such page")
    if asks_to_wait(status):
        raise SiteUnavailable(f"{url} answers HTTP {status}", wait_of(answer))
    if not _OK <= status < _REDIRECTED:
        raise CrawlRefused(f"{url} answers HTTP {status}")
