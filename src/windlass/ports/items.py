"""The verbs of items."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Protocol

from windlass.core.item import Added, Item, ItemCount


class Items(Protocol):
    """What workers have found, each once in its collection."""

    async def add(self, job_id: int, token: int, found: Sequence[Mapping[str, Any]]) -> Added:
        """Add what a run has found; raises LeaseLost when it is no longer ours."""
        ...

    async def list(
        self, *, job_id: int | None = None, collection: str | None = None, after: int = 0, limit: int = 500
    ) -> Sequence[Item]:
        """Read items in the order they came: those that a job found first, or those of a collection."""
        ...

    def export(
        self, collection: str | None = None, *, job_id: int | None = None, after: int = 0, page: int = 100
    ) -> AsyncIterator[Item]:
        """Go through a whole collection, or all that a job found first, without holding it in memory."""
        ...

    async def count(self, collection: str | None = None, *, job_id: int | None = None) -> ItemCount:
        """Count the items of a collection, or those a job found first; beyond 10,000 the answer is a lower bound."""
        ...
