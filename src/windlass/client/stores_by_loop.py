"""Finds the store of the running event loop, or the one of all blocking code."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakSet

from windlass.client.outbox import LoopOutbox, Outbox, ThreadOutbox
from windlass.core.blocking import run
from windlass.core.job import Enqueued, Stored

if TYPE_CHECKING:
    from windlass.otel import Tracing
    from windlass.store import Store
    from windlass.store.backend import Backend

Sleep = Callable[[float], Awaitable[None]]


class OpenedStore(NamedTuple):
    """A store and how to wait beside it."""

    store: Store
    outbox: Outbox[Enqueued]
    counter: Outbox[Stored]
    """As the outbox, for callers that need the row of the job."""
    sleep: Sleep
    is_blocking: bool = False
    tracing: Tracing | None = None


async def block(seconds: float) -> None:
    """Sleep where code has no loop."""
    time.sleep(seconds)  # noqa: ASYNC251 - sleeps for code without a loop


class StoresByLoop:
    """Opens stores at first use and finds them again."""

    def __init__(self, backend: Backend, tracing: Tracing | None = None) -> None:
        """Open nothing yet."""
        self._backend = backend
        self._tracing = tracing
        self._start()
        _every.add(self)

    def _start(self) -> None:
        self._lock = threading.Lock()
        self._by_loop: dict[asyncio.AbstractEventLoop, OpenedStore] = {}
        self._blocking: OpenedStore | None = None

    def forget(self) -> None:
        """Begin anew in a forked child."""
        # Kept open: closing them here would end the parent's connections.
        _inherited.append((self._by_loop, self._blocking))
        self._backend.forget()
        self._start()

    async def here(self) -> OpenedStore:
        """Return the running loop's store."""
        loop = asyncio.get_running_loop()
        opened = self._by_loop.get(loop)
        # In a thread: opening a file may have to wait for a lock.
        return await asyncio.to_thread(self._open_for, loop) if opened is None else opened

    def _open_for(self, loop: asyncio.AbstractEventLoop) -> OpenedStore:
        with self._lock:
            opened = self._by_loop.get(loop)
            if opened is None:
                # What a loop left open when it ended cannot be closed from here; dropped, its connections close themselves.
                self._by_loop = {other: opened for other, opened in self._by_loop.items() if not other.is_closed()}
                store = self._backend.open_async()
                opened = self._by_loop[loop] = OpenedStore(
                    store, LoopOutbox(store.enqueue), LoopOutbox(store.enqueue_and_get), asyncio.sleep, tracing=self._tracing
                )
            return opened

    async def blocking(self) -> OpenedStore:
        """Return the store of code without a loop."""
        if self._blocking is None:
            with self._lock:
                if self._blocking is None:
                    store = self._backend.open_blocking()
                    self._blocking = OpenedStore(
                        store,
                        ThreadOutbox(store.enqueue),
                        ThreadOutbox(store.enqueue_and_get),
                        block,
                        is_blocking=True,
                        tracing=self._tracing,
                    )
        return self._blocking

    async def leave(self) -> None:
        """Close the running loop's store, unless others share it."""
        if not self._backend.is_shared:
            with self._lock:
                opened = self._by_loop.pop(asyncio.get_running_loop(), None)
            if opened is not None:
                await opened.store.aclose()

    async def aclose(self) -> None:
        """Close the running loop's store and the blocking one; where all share a database, every other too."""
        left = self._leave(asyncio.get_running_loop())
        if self._backend.is_shared:
            await asyncio.to_thread(self._backend.close)
        else:
            for opened in left:
                await opened.store.aclose()

    def close(self) -> None:
        """Close the blocking store and, where all share a database, every other; else each loop closes its own."""
        left = self._leave(None)
        if self._backend.is_shared:
            self._backend.close()
        else:
            for opened in left:
                run(opened.store.aclose())

    def _leave(self, here: asyncio.AbstractEventLoop | None) -> list[OpenedStore]:
        with self._lock:
            left = [] if self._blocking is None else [self._blocking]
            self._blocking = None
            loops = [loop for loop in self._by_loop if self._backend.is_shared or loop is here]
            return left + [self._by_loop.pop(loop) for loop in loops]


_every: WeakSet[StoresByLoop] = WeakSet()
_inherited: list[object] = []


def _forget_all() -> None:
    for stores in list(_every):
        stores.forget()


os.register_at_fork(after_in_child=_forget_all)
