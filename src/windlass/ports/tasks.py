"""Tasks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from windlass.core.known_task import DeclaredTask, KnownTask
from windlass.core.tally import Tally
from windlass.ports.gates import Gates


class Tasks(Gates, Protocol):
    """Tasks that processes declared; the entries outlive them."""

    async def declare(self, declared: Sequence[DeclaredTask]) -> Sequence[str]:
        """Enter tasks; returns those that had to be written: new, changed, or not seen for a minute."""
        ...

    async def knows(self, name: str) -> bool:
        """Whether any process ever declared the task."""
        ...

    async def get(self, name: str) -> KnownTask | None:
        """Read one; nothing when nobody declared or paused it."""
        ...

    async def list(self, *, after: str = "", limit: int = 500) -> Sequence[KnownTask]:
        """Read tasks by name, page by page."""
        ...

    async def count(self) -> Tally:
        """Count them, up to a bound."""
        ...
