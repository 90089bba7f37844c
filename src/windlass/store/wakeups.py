"""Wake-ups of one process: from whatever thread they come, merged, paced and handed out on the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from threading import Lock, get_ident
from types import TracebackType
from typing import Self
from weakref import WeakValueDictionary

from windlass.core.topic import EVERYTHING, Topic

Wake = Callable[[Collection[Topic]], None]

_FIRST_GAP_S = 0.005
_LONGEST_GAP_S = 0.05
_QUIET_S = 0.1


class SqlWakeups:
    """Sleepers of one event loop; `listen` connects them to a database while they are entered.

    Wake-ups are hints, never promises: a missing one costs a poll interval, a needless one a cheap query. To sleep without
    missing one: note the generation, look at the database, and if there was nothing, wait with what was noted. A wake-up that
    comes while you look ends the wait at once.
    """

    def __init__(self, listen: Callable[[SqlWakeups], AbstractAsyncContextManager[None]]) -> None:
        """Do nothing yet."""
        self.is_listening = False
        self._listen = listen
        self._stack = AsyncExitStack()
        self._holders = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = 0
        self._pace = Pace()
        self._lock = Lock()
        self._pending: set[Topic] = set()
        self._generations = dict.fromkeys(Topic, 0)
        self._subscribers: list[Callable[[Topic], None]] = []
        self._moved = asyncio.Event()

    async def __aenter__(self) -> Self:
        """Begin to listen, without waiting for the database; a later `async with` shares the listener of the first."""
        self._holders += 1
        if self._holders > 1:
            return self
        self._loop = asyncio.get_running_loop()
        self._thread = get_ident()
        # An earlier loop may have ended with a wake-up under way, which would keep every later one from being handed out.
        self._moved = asyncio.Event()
        with self._lock:
            self._pending.clear()
        await self._stack.enter_async_context(self._listen(self))
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Stop listening with the last that leaves; the first that entered should also be the last."""
        self._holders -= 1
        if self._holders:
            return
        # What ended the block is not passed on to what listens: a task group would wrap it.
        await self._stack.aclose()
        self.is_listening = False

    def subscribe(self, wake: Callable[[Topic], None]) -> None:
        """Have `wake` called on the event loop."""
        self._subscribers.append(wake)

    def generation(self, *topics: Topic) -> int:
        """Return a number that grows with every wake-up about one of the topics (none named: about any)."""
        return sum(self._generations[topic] for topic in topics or EVERYTHING)

    async def wait(self, noted: int, *topics: Topic, at_most: timedelta) -> bool:
        """Sleep until the generation of these topics is not the noted one; False when the time passed without."""
        try:
            async with asyncio.timeout(at_most.total_seconds()):
                while self.generation(*topics) == noted:
                    await self._moved.wait()
        except TimeoutError:
            return False
        return True

    def credit(self) -> None:
        """Note that looking was worth it: wake-ups stay prompt."""
        self._pace.credit()

    def wake(self, topics: Collection[Topic]) -> None:
        """Wake all sleepers; from any thread."""
        with self._lock:
            is_under_way = bool(self._pending)
            self._pending.update(topics)
        if self._loop is None or not topics or is_under_way:
            return
        # On the loop's own thread it needs no waking.
        schedule = self._loop.call_soon if get_ident() == self._thread else self._loop.call_soon_threadsafe
        # A loop that has just been closed has no sleeper left.
        with suppress(RuntimeError):
            schedule(self._deliver, self._loop)

    def _deliver(self, loop: asyncio.AbstractEventLoop) -> None:
        now = loop.time()
        if now < self._pace.next_at:
            loop.call_at(self._pace.next_at, self._deliver, loop)
            return
        self._pace.step(now)
        with self._lock:
            topics, self._pending = self._pending, set()
        for topic in topics:
            self._generations[topic] += 1
        self._moved.set()
        self._moved = asyncio.Event()
        for topic in topics:
            for wake in self._subscribers:
                wake(topic)


class Pace:
    """How soon the next wake-up may follow the last.

    One that led to no work makes the next wait longer, so that an idle worker beside busy ones, or one of many that all race
    for every job, rests. Work, or a while without any wake-up, makes the next one prompt again.
    """

    def __init__(self) -> None:
        """Be prompt."""
        self.next_at = 0.0
        self._gap = 0.0
        self._last_at = 0.0
        self._had_work = True

    def credit(self) -> None:
        """Note that work was found."""
        self._had_work = True

    def step(self, now: float) -> None:
        """Note that sleepers are being woken now."""
        if self._had_work or now - self._last_at > _QUIET_S:
            self._gap = 0.0
        else:
            self._gap = min(max(2 * self._gap, _FIRST_GAP_S), _LONGEST_GAP_S)
        self._had_work = False
        self._last_at = now
        self.next_at = now + self._gap


class CommitListeners:
    """Calls the listeners of this process when one database has a commit."""

    def __init__(self) -> None:
        """Have no listeners."""
        self._wakes: tuple[Wake, ...] = ()
        self._lock = Lock()

    @property
    def has_any(self) -> bool:
        """Whether there is a listener."""
        return bool(self._wakes)

    def notify(self, topics: Collection[Topic]) -> None:
        """Wake them all."""
        for wake in self._wakes:
            wake(topics)

    @contextmanager
    def calling(self, wake: Wake) -> Iterator[None]:
        """Call `wake` too, for as long as this is entered."""
        with self._lock:
            self._wakes = (*self._wakes, wake)
        try:
            yield
        finally:
            with self._lock:
                self._wakes = tuple(each for each in self._wakes if each != wake)


_listeners_by_file: WeakValueDictionary[Path, CommitListeners] = WeakValueDictionary()
_listeners_lock = Lock()


def listeners_of(path: str) -> CommitListeners:
    """Return the listeners that all stores of this process on one file share; a database in memory has its own."""
    if path == ":memory:":
        return CommitListeners()
    with _listeners_lock:
        return _listeners_by_file.setdefault(Path(path).resolve(), CommitListeners())
