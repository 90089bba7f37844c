"""Lanes, for asyncio."""

from __future__ import annotations

from collections.abc import Sequence

from windlass.core.gate import GateKind
from windlass.core.lane import Lane
from windlass.store.calls import gates
from windlass.store.gates import SqlGates


class SqlLanes(SqlGates):
    """Lanes that were paused, declared or have jobs."""

    _kind = GateKind.LANE

    async def list(self) -> Sequence[Lane]:
        """Read every lane by name, with its exact counts."""
        return await self._db.run(gates.list_lanes())
