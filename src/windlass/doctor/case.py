"""What the checks are given to look at."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

from windlass.config import Settings
from windlass.core.finding import Finding
from windlass.store import Store
from windlass.store.calls.call import single
from windlass.store.rows import Row

if TYPE_CHECKING:
    from windlass.store.postgres_path import PostgresPath

T = TypeVar("T")


@dataclass(slots=True)
class DoctorCase:
    """A database, and what this process has read of it."""

    store: Store
    settings: Settings
    now: Callable[[], datetime]
    """This machine's own clock, which is compared with the database's."""
    is_blocking: bool = False
    """Whether nothing may be awaited but the store, whose coroutines never suspend."""
    path: PostgresPath | None = field(default=None, init=False)
    """The connection path to PostgreSQL, once it was examined."""
    _server: Mapping[str, str] | None = field(default=None, init=False)

    @property
    def is_postgres(self) -> bool:
        """Which of the two databases it is."""
        return self.store.database.dialect == "postgres"

    async def ask(self, query: str, **params: Any) -> Sequence[Row]:
        """Run one of the doctor's queries."""
        return await self.store.run(single(query, params, list, is_read=True))

    async def server(self) -> Mapping[str, str]:
        """Read what is in force at the database, once."""
        if self._server is None:
            self._server = {name: str(value) for name, value in await self.ask("doctor_server")}
        return self._server

    async def aside(self, work: Callable[[], T]) -> T:
        """Do what blocks without holding up an event loop."""
        return work() if self.is_blocking else await asyncio.to_thread(work)


Check = Callable[[DoctorCase], Awaitable[Finding]]
