"""Runs costly reads one after the other, with rests between them, so that everything else goes on."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from random import Random

from windlass.web.errors import Refusal

_REST = 3.0
"""How many times as long as a read took the next one waits."""
_LONGEST_REST_S = 0.5
_RETRY_AFTER_S = 2


class ReadPermit:
    """The right to read, until it is given back."""

    def __init__(self, queue: ReadQueue) -> None:
        """Begin now."""
        self._queue = queue
        self._began = time.monotonic()
        self._is_over = False

    def end(self) -> None:
        """Let the next one read, after a rest; again is no error."""
        if not self._is_over:
            self._is_over = True
            self._queue.ended(time.monotonic() - self._began)


class ReadQueue:
    """Grants so many permits at a time; a request that waits too long, or finds too many waiting, is refused.

    Principals are served in turn, so that one program with a hundred connections does not push others out.
    """

    def __init__(self, at_once: int, most_waiting: int, patience_s: float, rng: Random) -> None:
        """Start empty."""
        self._free = at_once
        self._most_waiting = most_waiting
        self._patience_s = patience_s
        self._rng = rng
        self._count = 0
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}

    async def take(self, name: str) -> ReadPermit:
        """Wait for a permit; raises a Refusal with 503."""
        if self._free and not self._waiting:
            self._free -= 1
            return ReadPermit(self)
        if self._count >= self._most_waiting:
            raise _busy()
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(name, deque()).append(future)
        self._count += 1
        try:
            # Not all at the same moment: they may have come together.
            async with asyncio.timeout(self._patience_s * self._rng.uniform(0.5, 1.0)):
                await future
        except TimeoutError:
            if self._was_given(future):
                return ReadPermit(self)
            raise _busy() from None
        except asyncio.CancelledError:
            if self._was_given(future):
                self._give()
            raise
        finally:
            self._count -= 1
            self._forget(name, future)
        return ReadPermit(self)

    @staticmethod
    def _was_given(future: asyncio.Future[None]) -> bool:
        return future.done() and not future.cancelled()

    def ended(self, took_s: float) -> None:
        """Note that a read is over; there is no rest where no other request waits."""
        if self._waiting:
            asyncio.get_running_loop().call_later(min(took_s * _REST, _LONGEST_REST_S), self._give)
        else:
            self._free += 1

    def _give(self) -> None:
        """Hand the permit to the next name that waits."""
        for name in list(self._waiting):
            line = self._waiting.pop(name)
            while line:
                future = line.popleft()
                if not future.done():
                    if line:
                        self._waiting[name] = line
                    future.set_result(None)
                    return
        self._free += 1

    def _forget(self, name: str, future: asyncio.Future[None]) -> None:
        line = self._waiting.get(name)
        if line is not None and future in line:
            line.remove(future)
            if not line:
                del self._waiting[name]


def _busy() -> Refusal:
    return Refusal(503, "too much is being read at the moment; try again later", {"retry-after": str(_RETRY_AFTER_S)})


def read_took_too_long() -> Refusal:
    """Describe a costly read that was ended because it took too long."""
    text = "reading this took too long and was ended; ask for less, with a filter or a smaller limit, or try again later"
    return Refusal(503, text, {"retry-after": str(_RETRY_AFTER_S)})
