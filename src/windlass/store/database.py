"""What the asyncio side of a store needs of its adapter."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import Any, Protocol, TypeVar

from windlass.store.calls.call import Call
from windlass.store.wakeups import SqlWakeups

T = TypeVar("T")


class Database(Protocol):
    """One of the two adapters."""

    @property
    def dialect(self) -> str:
        """The dialect of its SQL."""
        ...

    async def run(self, call: Call[T]) -> T:
        """Run a call in a transaction of its own."""
        ...

    async def run_within(self, connection: Any, call: Call[T]) -> T:
        """Run a call inside the caller's own transaction."""
        ...

    def listen(self, wakeups: SqlWakeups, rng: Random) -> AbstractAsyncContextManager[None]:
        """Wake `wakeups` when others commit, for as long as this is entered."""
        ...

    async def aclose(self) -> None:
        """Close the database."""
        ...


class Bounded:
    """The same database, whose reads may take only so long: for readers that would rather try again later.

    A read that takes longer is ended and raises StoreBusy.
    """

    def __init__(self, database: Database, timeout: timedelta) -> None:
        """Read from `database`."""
        self._database = database
        self._timeout = timeout

    @property
    def dialect(self) -> str:
        """The dialect of its SQL."""
        return self._database.dialect

    async def run(self, call: Call[T]) -> T:
        """Run a call in a transaction of its own."""
        return await self._database.run(replace(call, timeout=self._timeout) if call.is_read else call)

    async def run_within(self, connection: Any, call: Call[T]) -> T:
        """Run a call inside the caller's own transaction, whose time is the caller's."""
        return await self._database.run_within(connection, call)

    def listen(self, wakeups: SqlWakeups, rng: Random) -> AbstractAsyncContextManager[None]:
        """Wake `wakeups` when others commit, for as long as this is entered."""
        return self._database.listen(wakeups, rng)

    async def aclose(self) -> None:
        """Close the database."""
        await self._database.aclose()
