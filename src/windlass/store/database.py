"""What the asyncio side of a store needs of its adapter."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from random import Random
from typing import Any, Protocol, TypeVar

from windlass.store.calls.call import Call
from windlass.store.wakeups import SqlWakeups

T = TypeVar("T")


async def run_in(database: Database, call: Call[T], connection: Any = None) -> T:
    """Run a call inside the caller's transaction if there is one, else in its own."""
    return await (database.run(call) if connection is None else database.run_within(connection, call))


class Database(Protocol):
    """One of the two adapters."""

    @property
    def dialect(self) -> str:
        """Which SQL it speaks."""
        ...

    async def run(self, call: Call[T]) -> T:
        """Run a call in a transaction of its own."""
        ...

    async def run_within(self, connection: Any, call: Call[T]) -> T:
        """Run a call inside the caller's own transaction."""
        ...

    def listen(self, wakeups: SqlWakeups, rng: Random) -> AbstractAsyncContextManager[None]:
        """Ring `wakeups` when others commit, for as long as this is entered."""
        ...

    async def aclose(self) -> None:
        """Let go of the database."""
        ...
