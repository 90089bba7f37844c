"""Pausing, resuming and draining, for asyncio."""

from __future__ import annotations

import asyncio

from windlass.core.audit import Actor
from windlass.core.gate import Drain, Gate, GateKind
from windlass.store.calls import gates
from windlass.store.calls.audit import audited
from windlass.store.database import Database

_LOOKS = 500
_PAUSE_SECONDS = 0.01


class SqlGates:
    """What lanes and tasks have in common."""

    _kind: GateKind

    def __init__(self, database: Database, actor: Actor | None) -> None:
        """Speak to `database`; `actor` is who pauses."""
        self._db = database
        self._actor = actor

    async def pause(self, name: str) -> Gate:
        """Let no job be claimed from now on; a claim made from an older view takes nothing."""
        call = gates.pause(self._kind, name, None if self._actor is None else self._actor.principal)
        return await self._db.run(audited(call, self._actor, lambda _: gates.tell(self._kind, name, "pause")))

    async def resume(self, name: str) -> Gate:
        """Let jobs be claimed again."""
        call = gates.resume(self._kind, name)
        return await self._db.run(audited(call, self._actor, lambda _: gates.tell(self._kind, name, "resume")))

    async def running_in(self, name: str) -> int:
        """Count leased jobs: runs, and cancelled ones that have not stopped."""
        return await self._db.run(gates.count_leased(self._kind, name))

    async def drain(self, name: str) -> Drain:
        """Pause, and count what still runs once nothing more can start.

        On PostgreSQL a claim compares the gate's version in its own snapshot. One that took its snapshot before the pause
        committed may commit after it, and whoever counts in between sees nothing running. So we look twice: at who writes
        jobs after the pause, and at the leases once all of those have ended. A claim that comes later sees the new version
        and takes nothing; an older one has ended, and its leases are counted. A foreign transaction that stays open for
        seconds leaves the drain unsettled; ask again.
        """
        await self.pause(name)
        is_settled = await self._outlast(await self._db.run(gates.list_writers()))
        return Drain(name, await self.running_in(name), is_settled)

    async def _outlast(self, writers: list[str]) -> bool:
        for _ in range(_LOOKS):
            if not writers:
                return True
            await asyncio.sleep(_PAUSE_SECONDS)
            writers = await self._db.run(gates.list_writers(writers))
        return not writers
