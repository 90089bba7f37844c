"""The verbs of signed requests."""

from __future__ import annotations

from datetime import timedelta
from typing import Protocol


class Signatures(Protocol):
    """Signed requests that were taken, by any process."""

    async def record(self, digest: str, lasts: timedelta) -> bool:
        """Note a signature for so long; False when it was noted before."""
        ...

    async def prune(self, *, limit: int = 1000) -> int:
        """Forget signatures whose time is over; returns how many."""
        ...
