"""What a host asks of robots (RFC 9309)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from protego import Protego

from windlass.packs.crawl.errors import SiteUnavailable
from windlass.packs.crawl.waiting import asks_to_wait, wait_of
from windlass.packs.outgoing import Answer, TooManyRedirects
from windlass.packs.outgoing.url import WebUrl

NAME = "windlass"
"""What a robots.txt calls us."""
LONGEST_PAUSE_S = 30.0
_OK = 200
_CLIENT_ERROR = 400
# The standard asks to read at least 500 kibibytes.
_READ = 512_000


class Robots(NamedTuple):
    """The rules of one host; without any everything is allowed."""

    rules: Protego | None = None

    def allows(self, url: str) -> bool:
        """Whether the host lets us ask for an address."""
        return self.rules is None or bool(self.rules.can_fetch(url, NAME))

    def pause_s(self, least: float) -> float:
        """How long to leave the host alone between two requests; what it asks for is honoured up to a bound."""
        wanted = None if self.rules is None else self.rules.crawl_delay(NAME)
        return least if wanted is None else max(least, min(float(wanted), LONGEST_PAUSE_S))


class RobotsBook:
    """The rules of every host that one run meets, each asked for once."""

    def __init__(self, ask: Callable[[str], Awaitable[Answer]]) -> None:
        """Ask for addresses with `ask`, which follows redirects."""
        self._ask = ask
        self._known: dict[str, Robots] = {}

    async def of(self, url: WebUrl) -> Robots:
        """Give the rules of a host; raises SiteUnavailable while it cannot say them."""
        if url.origin not in self._known:
            self._known[url.origin] = await self._read(f"{url.origin}/robots.txt")
        return self._known[url.origin]

    async def _read(self, address: str) -> Robots:
        try:
            answer = await self._ask(address)
        except TooManyRedirects:
            return Robots()
        if asks_to_wait(answer.status):
            # Everything is forbidden then; the host may have rules that it cannot tell.
            raise SiteUnavailable(f"{address} answers HTTP {answer.status}, so nothing may be crawled now", wait_of(answer))
        if not _OK <= answer.status < _CLIENT_ERROR:
            return Robots()
        return Robots(Protego.parse(answer.body[:_READ].decode(errors="replace")))
