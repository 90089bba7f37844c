"""Sends the ends of runs to the store in batches."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import chain
from random import Random
from typing import TypeVar

from windlass.core.job import JobState
from windlass.core.outcome import Ending, Run
from windlass.errors import RowsLocked, StoreUnavailable
from windlass.ports import Work
from windlass.worker.worker_log import log

T = TypeVar("T")

BATCH = 200
"""How many endings are not worth waiting for more."""
MOST_SENT = 500
"""How many go in one statement: while one is on its way others gather, and each costs a commit and two trips."""
MOST_WAITING = 2000
_LINGER_S = 0.005
_FIRST_WAIT_S = 0.05
_FIRST_LATE_S = 0.25
_LONGEST_WAIT_S = 5.0
_LONGEST_LAST_WAIT_S = 0.25

Stop = tuple[int, int, Run]
Accepted = Callable[[Sequence[Ending], Mapping[int, JobState]], None]


class Acker:
    """Holds endings until the store has them; a store that is down delays them and loses none."""

    def __init__(
        self,
        store: Work,
        *,
        rng: Random,
        is_busy: Callable[[], bool],
        accepted: Accepted,
        has_caught_up: Callable[[], None] = lambda: None,
    ) -> None:
        """Send to `store`; `is_busy` returns whether more will come soon, `accepted` is called with those that were written.

        `has_caught_up` is called when there is room again after there was none.
        """
        self._store = store
        self._rng = rng
        self._is_busy = is_busy
        self._accepted = accepted
        self._has_caught_up = has_caught_up
        self._endings: list[Ending] = []
        self._stops: list[Stop] = []
        self._late: list[Ending] = []
        self._late_stops: list[Stop] = []
        self._is_late = asyncio.Event()
        self._in_flight = 0
        self._sending: list[Sequence[Ending]] = []
        self._longest_wait_s = _LONGEST_WAIT_S
        self._wake = asyncio.Event()
        self._full = asyncio.Event()
        self._plenty = asyncio.Event()
        self.has_room = True
        """Whether more jobs may start; otherwise the store has to catch up first."""

    def add(self, ending: Ending) -> None:
        """Take an ending; it is sent in a batch."""
        endings = self._endings
        endings.append(ending)
        if len(endings) == 1:
            self._wake.set()
        elif len(endings) == BATCH:
            self._full.set()
        elif len(endings) >= MOST_SENT:
            self._plenty.set()
            self.has_room = len(endings) < MOST_WAITING

    def add_stop(self, stop: Stop) -> None:
        """Report that a cancelled run has stopped."""
        self._stops.append(stop)
        self._wake.set()

    @property
    def waiting(self) -> int:
        """How many reports the store does not have yet."""
        return len(self._endings) + len(self._stops) + len(self._late) + len(self._late_stops) + self._in_flight

    @property
    def unsent(self) -> list[Ending]:
        """The endings the store may not have yet: to send one twice does no harm, as its lease went with the first."""
        return [*chain.from_iterable(self._sending), *self._endings, *self._late]

    async def run(self) -> None:
        """Send for ever; cancel it only once nothing is waiting."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._send_late())
            group.create_task(self._send_plenty())
            while True:
                await self._wake.wait()
                await self._linger()
                self._wake.clear()
                self._full.clear()
                await self._send()

    async def drain(self) -> None:
        """Wait until everything is sent, without lingering."""
        self._longest_wait_s = _LONGEST_LAST_WAIT_S
        while self.waiting:
            self._full.set()
            await asyncio.sleep(0.001)

    async def _linger(self) -> None:
        """Let a batch fill, if there is anything to fill it."""
        if len(self._endings) < BATCH and self._is_busy():
            try:
                async with asyncio.timeout(_LINGER_S):
                    await self._full.wait()
            except TimeoutError:
                pass

    async def _send(self) -> None:
        stops, self._stops = self._stops, []
        self._in_flight += len(stops)
        await self._send_batch()
        for start in range(0, len(stops), MOST_SENT):
            await self._send_stops(stops[start : start + MOST_SENT])

    async def _send_plenty(self) -> None:
        """Send beside the others what fills a statement: one waits for the disk while the other is carried out."""
        while True:
            await self._plenty.wait()
            self._plenty.clear()
            while len(self._endings) >= MOST_SENT:
                await self._send_batch()

    async def _send_batch(self) -> None:
        endings = self._endings[:MOST_SENT]
        del self._endings[:MOST_SENT]
        if self._endings:
            # What is beyond one statement goes with what comes while that is on its way.
            self._wake.set()
        if not self.has_room and len(self._endings) < MOST_WAITING:
            self.has_room = True
            self._has_caught_up()
        if endings:
            self._in_flight += len(endings)
            self._sending.append(endings)
            await self._send_endings(endings)
            self._sending.remove(endings)

    async def _send_late(self) -> None:
        """Try again the ends that other transactions blocked, apart from the rest, which they must not delay."""
        wait = _FIRST_LATE_S
        while True:
            await self._is_late.wait()
            await asyncio.sleep(wait * self._rng.uniform(0.5, 1.0))
            self._is_late.clear()
            endings, self._late = self._late, []
            stops, self._late_stops = self._late_stops, []
            self._in_flight += len(endings) + len(stops)
            for start in range(0, len(endings), MOST_SENT):
                await self._send_endings(endings[start : start + MOST_SENT])
            for start in range(0, len(stops), MOST_SENT):
                await self._send_stops(stops[start : start + MOST_SENT])
            wait = min(wait * 2, _LONGEST_WAIT_S) if self._is_late.is_set() else _FIRST_LATE_S

    async def _send_stops(self, stops: Sequence[Stop]) -> None:
        try:
            await self._until_sent(lambda: self._store.stop(stops))
        except RowsLocked as error:
            self._late_stops += [stop for stop in stops if not error.ids or stop[0] in error.ids]
            self._is_late.set()
        except Exception:
            log.exception("%d reports of stopped runs could not be sent together", len(stops))
            # One that is refused alone is dropped: its lease runs out, and keeping it would block all others.
            if len(stops) > 1:
                for stop in stops:
                    await self._send_stops([stop])
                return
        self._in_flight -= len(stops)

    async def _send_endings(self, endings: Sequence[Ending]) -> None:
        try:
            accepted = await self._until_sent(lambda: self._store.finish(endings))
        except RowsLocked as error:
            log.warning("%s; their ends are recorded later", error)
            late = [ending for ending in endings if not error.ids or ending.id in error.ids]
            self._late += late
            self._is_late.set()
            self._in_flight -= len(endings)
            self._accepted([ending for ending in endings if ending not in late], error.accepted)
            return
        except Exception:
            log.exception("%d endings could not be sent together", len(endings))
            if len(endings) > 1:
                for ending in endings:
                    await self._send_endings([ending])
                return
            # Its lease runs out and the job is reclaimed; keeping it would block all others.
            accepted = {}
        self._in_flight -= len(endings)
        self._accepted(endings, accepted)

    async def _until_sent(self, send: Callable[[], Awaitable[T]]) -> T:
        """Try as long as the store is away: a dropped ending would run its job again."""
        wait = _FIRST_WAIT_S
        while True:
            try:
                return await send()
            except RowsLocked:
                raise
            except StoreUnavailable as error:
                if wait == _FIRST_WAIT_S:
                    log.warning("the store is away, %d reports wait: %s", self.waiting, error)
            await asyncio.sleep(min(wait, self._longest_wait_s) * self._rng.uniform(0.5, 1.0))
            wait = min(wait * 2, _LONGEST_WAIT_S)
