"""What a host asks of robots (RFC 9309)."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterator
from typing import NamedTuple

from protego import Protego

from windlass.packs.crawl.charset import decode_page
from windlass.packs.crawl.errors import SiteUnavailable, asks_to_wait, wait_of
from windlass.packs.outgoing import FINAL, Answer
from windlass.packs.outgoing.url import WebUrl

NAME = "windlass"
"""What a robots.txt calls us."""
LONGEST_PAUSE_S = 30.0
_OK = 200
_CHARSET = "charset=utf-8"
"""What the standard asks for; a byte order mark comes first, and would hide the first line if it stayed."""
_CLIENT_ERROR = 400
MAX_BYTES = 512_000
"""The standard asks to read at least 500 kibibytes."""
# Each is looked at for every link of a page.
_MAX_WILDCARDS = 2_000
_AGENT = re.compile(r"user[\s-]*+agent(?=[\s:])\s*+:?\s*+", re.IGNORECASE)
_ALLOW = re.compile(r"allow\b", re.IGNORECASE)


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
        """Ask for addresses with `ask`, which follows redirects and returns the first MAX_BYTES of an answer."""
        self._ask = ask
        self._known: dict[str, Robots] = {}

    async def of(self, url: WebUrl) -> Robots:
        """Return the rules of a host; raises SiteUnavailable while it cannot serve them."""
        if url.origin not in self._known:
            self._known[url.origin] = await self._read(f"{url.origin}/robots.txt")
        return self._known[url.origin]

    async def _read(self, address: str) -> Robots:
        try:
            answer = await self._ask(address)
        except FINAL:
            # It leads round in circles, or to where no crawler may go. If that is true of the host itself, its pages show it.
            return Robots()
        if asks_to_wait(answer.status):
            # Everything is forbidden then; the host may have rules that it cannot serve.
            raise SiteUnavailable(f"{address} answers HTTP {answer.status}, so nothing may be crawled now", wait_of(answer))
        if not _OK <= answer.status < _CLIENT_ERROR:
            return Robots()
        return await asyncio.to_thread(read_rules, decode_page(answer.body[:MAX_BYTES], _CHARSET))


def read_rules(text: str) -> Robots:
    """Read a robots.txt; may take half a second, so it belongs into a thread."""
    return Robots(Protego.parse("\n".join(_bounded(text))))


def _bounded(text: str) -> Iterator[str]:
    """Keep the rules for us that can be checked for every link; of too many wildcards each forbids more."""
    wildcards, last = 0, ""
    for written in text.splitlines():
        line = written.partition("#")[0].strip()
        agent = _AGENT.match(line)
        if agent is not None:
            last = ""
            yield f"User-agent: {_agent(line[agent.end() :])}"
            continue
        wildcards += line.count("*")
        if "*" not in line or wildcards <= _MAX_WILDCARDS:
            yield line
        elif not _ALLOW.match(line):
            start = line.partition("*")[0]
            cut = start if "/" in start else "Disallow: /"
            if cut != last:
                yield cut
            last = cut


def _agent(name: str) -> str:
    """Call all others by one name: the parser keeps the rules of a group once for each name in it."""
    wanted = name if name == "*" else name.replace("*", "").lower()
    return wanted if wanted == "*" or (wanted and NAME.startswith(wanted)) else "somebody-else"
