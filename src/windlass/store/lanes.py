"""Lanes, for asyncio."""

from __future__ import annotations

from collections.abc import Sequence

from windlass.core.gate import Gate, GateKind
from windlass.core.lane import Lane
from windlass.store.calls import gates
from windlass.store.gates import SqlGates


class SqlLanes(SqlGates):
    """Lanes that were paused, declared or have jobs."""

    _kind = GateKind.LANE

    async def get(self, name: str) -> Gate:
        """Say whether it is paused, and by whom."""
        return await self._db.run(gates.get(self._kind, name))

    async def list(self) -> Sequence[Lane]:
        """Read every lane by name, with its exact counts."""
        return await self._db.run(gates.list_lanes())
