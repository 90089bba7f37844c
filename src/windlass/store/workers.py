"""The registry of processes, for asyncio."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta

from windlass.core.worker import Neighbour, NewWorker, Worker
from windlass.store.calls import workers
from windlass.store.database import Database

OFFLINE_AFTER = timedelta(minutes=1)
GONE_FOR = timedelta(days=7)


class SqlWorkers:
    """Processes that run jobs."""

    def __init__(self, database: Database) -> None:
        """Speak to `database`."""
        self._db = database

    async def register(self, worker: NewWorker) -> None:
        """Enter a process; one that registers again starts anew."""
        await self._db.run(workers.register(worker))

    async def seen(self, worker: str, running: int, *, loop_blocks: int = 0) -> bool:
        """Note a heartbeat; False asks the process to register again: it was forgotten or has said that it stopped."""
        return await self._db.run(workers.seen(worker, running, loop_blocks))

    async def pulled(self, seen: Mapping[str, str]) -> int:
        """Note pull workers as seen, by name, with the address of each; returns how many."""
        return await self._db.run(workers.pulled(seen)) if seen else 0

    async def stopped(self, worker: str) -> bool:
        """Note that a process has ended in order."""
        return await self._db.run(workers.stopped(worker))

    async def list_neighbours(self, place: str) -> Sequence[Neighbour]:
        """List the processes of one machine that are registered and have not stopped."""
        return await self._db.run(workers.list_neighbours(place))

    async def lose(self, place: str, gone: Sequence[Neighbour]) -> Sequence[str]:
        """Note that processes are gone without a word: their leases end at once. Returns the workers this was news of."""
        if not gone:
            return []
        return await self._db.run(workers.lose(place, gone))

    async def prune(self, gone_for: timedelta = GONE_FOR, *, limit: int = 1000) -> int:
        """Forget processes that were not seen for so long; returns how many."""
        return await self._db.run(workers.prune(gone_for, limit))

    async def list(self, *, offline_after: timedelta = OFFLINE_AFTER, limit: int = workers.MAX_WORKERS) -> Sequence[Worker]:
        """Read processes, last seen first, with the jobs they have started."""
        return await self._db.run(workers.list_workers(offline_after, limit))
