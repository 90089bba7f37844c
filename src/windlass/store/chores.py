"""Chores, for asyncio."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from windlass.core.audit import Actor, Deed
from windlass.core.chore import Chore, Permit
from windlass.store.calls import chores
from windlass.store.calls.audit import audited
from windlass.store.database import Database


class SqlChores:
    """Upkeep that one instance of many does for each interval."""

    def __init__(self, database: Database, actor: Actor | None) -> None:
        """Speak to `database`; `actor` is who pauses."""
        self._db = database
        self._actor = actor

    async def due(self, chore: str, every: timedelta, worker: str) -> Permit | None:
        """Take the chore if its interval has passed; of any number of instances one gets the permit."""
        return await self._db.run(chores.due(chore, every, worker))

    async def done(
        self,
        permit: Permit,
        rows: int,
        duration: timedelta,
        *,
        error: str | None = None,
        cursor: str | None = None,
        again: timedelta | None = None,
    ) -> bool:
        """Say how it went, where the next one goes on and how soon; False when another instance took the chore meanwhile."""
        call = chores.done(permit, rows, duration, error=error, cursor=cursor, again=again)
        return await self._db.run(call)

    async def pause(self, chore: str) -> bool:
        """Let nobody take the chore; says whether that changed anything."""
        deed = Deed("pause chore", f"chore:{chore}")
        return await self._db.run(audited(chores.pause(chore), self._actor, lambda _: deed))

    async def resume(self, chore: str) -> bool:
        """Undo `pause`; an overdue chore is due at once."""
        deed = Deed("resume chore", f"chore:{chore}")
        return await self._db.run(audited(chores.resume(chore), self._actor, lambda _: deed))

    async def list(self) -> Sequence[Chore]:
        """Read every chore that was ever due or paused."""
        return await self._db.run(chores.list_chores())
