"""One request at a time for each host, with a pause after it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

_REMEMBERED = 1_000


@dataclass(slots=True)
class _Host:
    """The lock of a host, and when the next request may go out."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    next_at: float = 0.0
    callers: int = 0


class Politeness:
    """The turns of all crawls of one event loop."""

    def __init__(self) -> None:
        """Start without hosts."""
        self._hosts: dict[str, _Host] = {}

    @asynccontextmanager
    async def turn(self, host: str, pause_s: float) -> AsyncIterator[None]:
        """Wait until no other request goes to this host and it had its pause; ours begins when the block ends."""
        clock = asyncio.get_running_loop().time
        known = self._host(host, clock())
        known.callers += 1
        try:
            async with known.lock:
                await asyncio.sleep(max(0.0, known.next_at - clock()))
                try:
                    yield
                finally:
                    known.next_at = clock() + pause_s
        finally:
            known.callers -= 1

    def _host(self, name: str, now: float) -> _Host:
        if name not in self._hosts and len(self._hosts) >= _REMEMBERED:
            self._hosts = {key: host for key, host in self._hosts.items() if host.callers or host.next_at > now}
        return self._hosts.setdefault(name, _Host())


_of_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, Politeness] = WeakKeyDictionary()


def politeness() -> Politeness:
    """Return the turns of the running event loop, which all crawls of a worker share."""
    return _of_loop.setdefault(asyncio.get_running_loop(), Politeness())
