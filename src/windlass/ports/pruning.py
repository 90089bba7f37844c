"""Retention."""

from __future__ import annotations

from typing import Protocol

from windlass.core.chore import Swept
from windlass.core.retention import DEFAULT, Pruned, Retention


class Pruning(Protocol):
    """Lets go of what need not be kept."""

    async def prune(self, rules: Retention = DEFAULT, *, limit: int = 200) -> Pruned:
        """Delete by the rules, in batches of about `limit` jobs; any number of instances may do it at once."""
        ...

    async def prune_some(
        self, rules: Retention = DEFAULT, cursor: str | None = None, *, limit: int = 200, pages: int = 50
    ) -> Swept:
        """Go on with a pass from where the last part ended, for so many pages; without a cursor it begins anew."""
        ...
