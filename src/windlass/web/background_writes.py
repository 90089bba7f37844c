"""Small writes that no request waits for: refusals for the audit log, and when tokens were last used."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from windlass.app import Windlass
from windlass.core.audit import REFUSED, Actor, Deed
from windlass.core.job import MAX_KEY, MAX_NAME
from windlass.core.payload import encode_object, sanitise_text
from windlass.errors import WindlassError
from windlass.web.limits import HttpLimits
from windlass.web.rate_limit import RateLimit

log = logging.getLogger("windlass.web")

_MOST_WAITING = 200
_MOST_TOKENS = 10_000
_SEEN_EVERY_S = 60.0
_PATIENCE_S = 1.0
_EVERYBODY = "everybody"
_HOUR_S = 3600.0
_COUNTED_EVERY_S = 60.0
_COUNTER = Actor("windlass")

Write = Callable[[], Awaitable[object]]


class BackgroundWrites:
    """Writes one after the other while it is entered; what does not fit in the queue is left out."""

    def __init__(self, app: Windlass, limits: HttpLimits) -> None:
        """Write to the application's store."""
        self._app = app
        self._queue: asyncio.Queue[Write] = asyncio.Queue(_MOST_WAITING)
        self._of_one = RateLimit(limits.audited_refusals)
        self._of_all = RateLimit(limits.audited_refusals_of_all, window_s=_HOUR_S)
        self._left_out = 0
        """Refusals without a line of their own since the last count was written."""
        self._next_count = 0.0
        self._seen: dict[int, float] = {}

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[None]:
        """Write in the background for as long as the block lasts."""
        async with asyncio.TaskGroup() as group:
            writer = group.create_task(self._write())
            try:
                yield
            finally:
                await self._finish()
                writer.cancel()

    async def _finish(self) -> None:
        """Write what was noted last, unless the database does not answer."""
        if self._left_out:
            self._count()
        try:
            async with asyncio.timeout(_PATIENCE_S):
                await self._queue.join()
        except TimeoutError:
            log.warning("%d notes were not written before the server stopped", self._queue.qsize())

    async def _write(self) -> None:
        while True:
            write = await self._queue.get()
            try:
                await write()
            except WindlassError as error:
                log.warning("a note could not be written: %s", error)
            finally:
                self._queue.task_done()

    def _put(self, write: Write) -> None:
        if not self._queue.full():
            self._queue.put_nowait(write)

    def refused(self, who: str, what: str, address: str, *, request_id: str, status: int, why: str) -> None:
        """Note a refusal in a line of its own, or count it where this address or all together have had too many."""
        if not self._of_one.record(address) or not self._of_all.record(_EVERYBODY):
            self._left_out += 1
            if time.monotonic() >= self._next_count:
                self._count()
            return
        details = encode_object(
            {"status": status, "address": sanitise_text(address, MAX_NAME), "why": sanitise_text(why, MAX_KEY)}
        )
        deed = Deed(REFUSED, sanitise_text(what, MAX_KEY) or "?", "refused", details)

        async def write() -> None:
            await self._app.acting(Actor(who, request_id)).audit.add(deed)

        self._put(write)

    def _count(self) -> None:
        """Write how many refusals have no line of their own."""
        self._next_count = time.monotonic() + _COUNTED_EVERY_S
        count, self._left_out = self._left_out, 0
        deed = Deed(REFUSED, "refusals without a line of their own", "refused", encode_object({"count": count}))

        async def write() -> None:
            await self._app.acting(_COUNTER).audit.add(deed)

        self._put(write)

    def seen(self, token_id: int) -> None:
        """Note that a token was used, at most once a minute."""
        now = time.monotonic()
        if now - self._seen.get(token_id, -_SEEN_EVERY_S) < _SEEN_EVERY_S:
            return
        if len(self._seen) >= _MOST_TOKENS:
            self._seen.clear()
        self._seen[token_id] = now

        async def write() -> None:
            await self._app.tokens.seen([token_id])

        self._put(write)
