"""Signed requests, for asyncio."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from windlass.store.calls import signatures

if TYPE_CHECKING:
    from windlass.store.database import Database


class SqlSignatures:
    """Signed requests that were taken, by any process."""

    def __init__(self, database: Database) -> None:
        """Speak to `database`."""
        self._db = database

    async def record(self, digest: str, lasts: timedelta) -> bool:
        """Note a signature for so long; False when it was noted before."""
        return await self._db.run(signatures.record(digest, lasts))

    async def prune(self, *, limit: int = 1000) -> int:
        """Forget signatures whose time is over; returns how many."""
        return await self._db.run(signatures.prune(limit))
