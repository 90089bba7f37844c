"""Retention."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

from windlass.core.retention import DEFAULT, Pruned, Retention


class Pruning(Protocol):
    """Lets go of what need not be kept."""

    async def prune(self, rules: Retention = DEFAULT, *, limit: int = 200, now: datetime | None = None) -> Pruned:
        """Delete by the rules, in batches of about `limit` jobs; any number of instances may do it at once."""
        ...
