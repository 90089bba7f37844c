"""Tasks, for asyncio."""

from __future__ import annotations

from collections.abc import Sequence

from windlass.core.gate import GateKind
from windlass.core.known_task import DeclaredTask, KnownTask
from windlass.core.tally import Tally
from windlass.store.calls import tally, tasks
from windlass.store.gates import SqlGates


class SqlTasks(SqlGates):
    """Tasks that processes declared; the entries outlive them."""

    _kind = GateKind.TASK

    async def declare(self, declared: Sequence[DeclaredTask]) -> Sequence[str]:
        """Enter tasks; returns those that had to be written: new, changed, or not seen for a minute."""
        if not declared:
            return ()
        return await self._db.run(tasks.declare(declared))

    async def knows(self, name: str) -> bool:
        """Whether any process ever declared the task."""
        return await self._db.run(tasks.knows(name))

    async def get(self, name: str) -> KnownTask | None:
        """Read one; nothing when nobody declared or paused it."""
        return await self._db.run(tasks.get(name))

    async def list(self, *, after: str = "", limit: int = tasks.MAX_LIST) -> Sequence[KnownTask]:
        """Read tasks by name, page by page."""
        return await self._db.run(tasks.list_tasks(after=after, limit=limit))

    async def count(self) -> Tally:
        """Count them, up to a bound."""
        return await self._db.run(tally.count("count_tasks"))
