"""The registry of processes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Protocol

from windlass.core.worker import Neighbour, NewWorker, Worker


class Workers(Protocol):
    """Processes that run jobs."""

    async def register(self, worker: NewWorker) -> None:
        """Enter a process; one that registers again starts anew."""
        ...

    async def seen(self, worker: str, running: int, *, loop_blocks: int = 0) -> bool:
        """Note a heartbeat; False asks the process to register again: it was forgotten or has said that it stopped."""
        ...

    async def pulled(self, seen: Mapping[str, str]) -> int:
        """Note pull workers as seen, by name, with the address of each; returns how many."""
        ...

    async def stopped(self, worker: str) -> bool:
        """Note that a process has ended in order."""
        ...

    async def list_neighbours(self, place: str) -> Sequence[Neighbour]:
        """List the processes of one machine that are registered and have not stopped."""
        ...

    async def lose(self, place: str, gone: Sequence[Neighbour]) -> Sequence[str]:
        """Note that processes are gone without a word: their leases end at once. Returns the workers this was news of."""
        ...

    async def prune(self, gone_for: timedelta = timedelta(days=7), *, limit: int = 1000) -> int:
        """Forget processes that were not seen for so long; returns how many."""
        ...

    async def list(self, *, offline_after: timedelta = timedelta(minutes=1), limit: int = 1000) -> Sequence[Worker]:
        """Read processes, last seen first, with the jobs they have started."""
        ...
