"""A store for code without an event loop: the same verbs over an adapter that never suspends."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from random import Random
from typing import Any, Protocol, TypeVar

from windlass.store.calls.call import Call
from windlass.store.wakeups import SqlWakeups

T = TypeVar("T")


class BlockingDatabase(Protocol):
    """An adapter that blocks its caller."""

    @property
    def dialect(self) -> str:
        """The dialect of its SQL."""
        ...

    def run_sync(self, call: Call[T]) -> T:
        """Run a call in a transaction of its own."""
        ...

    def run_on(self, connection: Any, call: Call[T]) -> T:
        """Run a call inside the caller's own transaction."""
        ...

    def run_script(self, work: Callable[[Any], T]) -> T:
        """Run `work` with a connection inside one transaction; for migrations."""
        ...

    def close(self) -> None:
        """Close the database."""
        ...


class Blocking:
    """The asynchronous interface of a blocking adapter, so that every verb is written once.

    A store on it returns coroutines that finish at the first step; `windlass.core.blocking.run` ends them.
    """

    def __init__(self, database: BlockingDatabase) -> None:
        """Block on `database`."""
        self._database = database

    @property
    def dialect(self) -> str:
        """The dialect of its SQL."""
        return self._database.dialect

    async def run(self, call: Call[T]) -> T:
        """Run a call in a transaction of its own."""
        return self._database.run_sync(call)

    async def run_within(self, connection: Any, call: Call[T]) -> T:
        """Run a call inside the caller's own transaction."""
        return self._database.run_on(connection, call)

    def listen(self, wakeups: SqlWakeups, rng: Random) -> AbstractAsyncContextManager[None]:
        """Refuse: a wait for a wake-up would suspend."""
        raise NotImplementedError("code without an event loop polls; wake-ups need one")

    async def aclose(self) -> None:
        """Close the database."""
        self._database.close()
