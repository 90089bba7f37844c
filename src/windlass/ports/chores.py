"""Upkeep that one instance of many does for each interval."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Protocol

from windlass.core.chore import Chore, Permit


class Chores(Protocol):
    """Who does which chore, and how it went."""

    async def due(self, chore: str, every: timedelta, worker: str) -> Permit | None:
        """Take the chore if its interval has passed; of any number of instances one gets the permit."""
        ...

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
        ...

    async def pause(self, chore: str) -> bool:
        """Let nobody take the chore; says whether that changed anything."""
        ...

    async def resume(self, chore: str) -> bool:
        """Undo `pause`; an overdue chore is due at once."""
        ...

    async def list(self) -> Sequence[Chore]:
        """Read every chore that was ever due or paused."""
        ...
