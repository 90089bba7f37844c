"""Changes of the database: one look for all listeners, a few times a second at most."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import datetime, timedelta

from windlass.app import Windlass
from windlass.core.job import JobState
from windlass.core.record import record
from windlass.core.topic import Topic
from windlass.errors import StoreError
from windlass.store import Store
from windlass.store.wakeups import SqlWakeups
from windlass.web.errors import UNAVAILABLE, Refusal

log = logging.getLogger("windlass.web")

BEAT = b": still here\n\n"
_PATIENCE_S = 5.0


@record(kw_only=True)
class EventTiming:
    """How often listeners get something."""

    gap: timedelta = timedelta(milliseconds=250)
    """Between two changes, at least."""
    look: timedelta = timedelta(seconds=1)
    """How long to wait for a wake-up before counting: what ends well wakes no sleeper."""
    beat: timedelta = timedelta(seconds=15)
    """How long to send nothing."""


@record
class Change:
    """What to look at again, and how many jobs there are of each state."""

    topics: tuple[Topic, ...]
    at: datetime
    counts: dict[JobState, int]

    def encode(self, number: int) -> bytes:
        """Write it as an event."""
        data = json.dumps({"topics": self.topics, "at": self.at.isoformat(), "counts": self.counts}, separators=(",", ":"))
        return f"id: {number}\nevent: change\ndata: {data}\n\n".encode()


class Changes:
    """Polls while there are subscribers; each change is encoded once and sent to all."""

    def __init__(self, app: Windlass, stopping: asyncio.Event, *, most: int, timing: EventTiming | None = None) -> None:
        """Let `most` listen at a time, until `stopping` is set."""
        self._app = app
        self._stopping = stopping
        self._most = most
        self._timing = timing or EventTiming()
        self._listeners = 0
        self._wanted = asyncio.Event()
        self._moved = asyncio.Event()
        self._number = 0
        self._beats = 0
        self._latest: Change | None = None
        self._told: dict[JobState, int] | None = None
        self._event = b""
        self._looking = asyncio.Lock()
        self._looked_at = -1.0

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        """Look in the background for as long as the block lasts."""
        store = await self._app.store()
        async with store.wakeups as wakeups, asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._watch(store, wakeups)), group.create_task(self._end())]
            try:
                yield
            finally:
                for task in tasks:
                    task.cancel()

    @contextmanager
    def joined(self) -> Iterator[None]:
        """Count one more listener; raises a Refusal with 503 when there are too many."""
        if self._stopping.is_set():
            raise Refusal(UNAVAILABLE, "the server is stopping; try again", {"retry-after": "1"})
        if self._listeners >= self._most:
            raise Refusal(UNAVAILABLE, f"{self._listeners} clients listen already; try again later", {"retry-after": "10"})
        self._listeners += 1
        self._wanted.set()
        try:
            yield
        finally:
            self._listeners -= 1
            if not self._listeners:
                self._wanted.clear()

    async def now(self) -> Change:
        """Return the present state; requests within the same moment share an answer. Raises a Refusal after a while."""
        try:
            async with asyncio.timeout(_PATIENCE_S), self._looking:
                if self._latest is None or time.monotonic() - self._looked_at >= self._timing.gap.total_seconds():
                    self._latest = await self._look(await self._app.store(), tuple(Topic))
                return Change(tuple(Topic), self._latest.at, self._latest.counts)
        except TimeoutError:
            raise Refusal(UNAVAILABLE, "the database does not answer; try again", {"retry-after": "1"}) from None

    async def events(self) -> AsyncGenerator[bytes]:
        """Yield each change from now on, and a comment when none came for long; ends when the server stops."""
        number, beats = self._number, self._beats
        yield (await self.now()).encode(number)
        while not self._stopping.is_set():
            if number != self._number and self._latest is not None:
                # A listener that was too slow for one looks at everything.
                is_next, number, beats = self._number == number + 1, self._number, self._beats
                yield self._event if is_next else Change(tuple(Topic), self._latest.at, self._latest.counts).encode(number)
            elif beats != self._beats:
                beats = self._beats
                yield BEAT
            else:
                await self._moved.wait()

    async def _look(self, store: Store, topics: tuple[Topic, ...]) -> Change:
        counts = dict.fromkeys(JobState, 0)
        for one in await store.count_jobs():
            counts[one.state] += one.jobs
        seen = Change(topics, await store.clock(), counts)
        self._looked_at = time.monotonic()
        return seen

    async def _watch(self, store: Store, wakeups: SqlWakeups) -> None:
        heard = _generations(wakeups)
        sent_at = time.monotonic()
        while True:
            await self._wanted.wait()
            await wakeups.wait(sum(heard.values()), at_most=self._timing.look)
            before, heard = heard, _generations(wakeups)
            if await self._tell(store, tuple(topic for topic in Topic if heard[topic] != before[topic])):
                sent_at = time.monotonic()
            elif time.monotonic() - sent_at >= self._timing.beat.total_seconds():
                sent_at = time.monotonic()
                self._beats += 1
                self._move()
            await asyncio.sleep(self._timing.gap.total_seconds())

    async def _tell(self, store: Store, topics: tuple[Topic, ...]) -> bool:
        """Look, and hand out what is new; returns whether there was anything."""
        try:
            async with asyncio.timeout(_PATIENCE_S), self._looking:
                seen = self._latest = await self._look(store, topics)
        except (StoreError, TimeoutError) as error:
            log.debug("what changed could not be read: %s", error)
            return False
        # Not compared with the latest look: a newcomer may have made that for itself alone.
        if not topics and seen.counts == self._told:
            return False
        self._told = seen.counts
        self._number += 1
        self._event = seen.encode(self._number)
        self._move()
        return True

    async def _end(self) -> None:
        await self._stopping.wait()
        self._move()

    def _move(self) -> None:
        moved, self._moved = self._moved, asyncio.Event()
        moved.set()


def _generations(wakeups: SqlWakeups) -> dict[Topic, int]:
    return {topic: wakeups.generation(topic) for topic in Topic}
