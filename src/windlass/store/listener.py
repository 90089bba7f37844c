"""Listens for announcements of other processes, and notices when none arrive any more."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager
from random import Random

from windlass.core.topic import EVERYTHING, Topic
from windlass.errors import StoreError, StoreUnavailable
from windlass.store.wakeups import SqlWakeups

log = logging.getLogger("windlass.store")

Hear = Callable[[float], Awaitable[Sequence[str]]]
"""Waits up to so many seconds for announcements; none came when it is empty."""

_TEST = "test"
_PATIENCE_S = 5.0
# Together with the patience: how long a connection that delivers nothing any more stays unnoticed.
_QUIET_S = 10.0
_SHORTEST_PAUSE_S = 0.1
_LONGEST_PAUSE_S = 5.0
# A connection that never delivered anything is not made again sooner: the network path to the server must be repaired first.
_DEAF_PAUSE_S = 60.0


class WakeupListener:
    """Keeps listening for ever, over lost connections and restarts of the server."""

    def __init__(
        self,
        connect: Callable[[], AbstractAsyncContextManager[Hear]],
        announce: Callable[[Collection[str]], None],
        rng: Random,
    ) -> None:
        """Listen on what `connect` opens; `announce` sends as all processes do, on another connection."""
        self._connect = connect
        self._announce = announce
        self._rng = rng
        self._pause = _SHORTEST_PAUSE_S
        self._has_warned = False

    async def run(self, wakeups: SqlWakeups) -> None:
        """Listen until cancelled."""
        while True:
            try:
                async with self._connect() as hear:
                    await self._hear(hear, wakeups)
            except StoreError as error:
                self._warn(error)
            finally:
                wakeups.is_listening = False
            await asyncio.sleep(self._pause * self._rng.uniform(0.5, 1.0))
            self._pause = min(2 * self._pause, _LONGEST_PAUSE_S)

    async def _hear(self, hear: Hear, wakeups: SqlWakeups) -> None:
        """Pass on what arrives; after a long time without anything, send a test.

        What one process has sent reaches all: a fleet of any size sends one test in that time.
        """
        is_testing = True
        self._announce([_TEST])
        while True:
            words = await hear(_PATIENCE_S if is_testing else _QUIET_S * self._rng.uniform(0.5, 1.0))
            if words:
                is_testing = False
                self._wake(words, wakeups)
            elif is_testing:
                self._pause = self._pause if wakeups.is_listening else _DEAF_PAUSE_S
                raise StoreUnavailable(_DEAF)
            else:
                is_testing = True
                self._announce([_TEST])

    def _wake(self, words: Sequence[str], wakeups: SqlWakeups) -> None:
        if wakeups.is_listening:
            wakeups.wake({Topic(word) for word in words if word in _TOPICS})
            return
        if self._has_warned:
            log.info("wake-ups arrive again")
        self._has_warned = False
        self._pause = _SHORTEST_PAUSE_S
        wakeups.is_listening = True
        # What was sent before is not known.
        wakeups.wake(EVERYTHING)

    def _warn(self, error: StoreError) -> None:
        if not self._has_warned:
            log.warning("wake-ups do not arrive, polling carries on until they do: %s", error)
        self._has_warned = True


_TOPICS = frozenset(topic.value for topic in Topic)
_DEAF = "no notifications arrive; behind a transaction pooler, give `listen_url` an address that leads to PostgreSQL itself"
