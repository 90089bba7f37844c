"""The items of a store."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from windlass.core.item import Added, Item, ItemCount
from windlass.store.calls import items
from windlass.store.calls.reads import MAX_LIST

if TYPE_CHECKING:
    from windlass.store.database import Database

# An item may have 64 KiB.
_PAGE = 100


class SqlItems:
    """What workers have found, each once in its collection."""

    def __init__(self, database: Database) -> None:
        """Speak to `database`."""
        self._db = database

    async def add(self, job_id: int, token: int, found: Sequence[Mapping[str, Any]]) -> Added:
        """Add what a run has found; raises LeaseLost when it is no longer ours."""
        return await self._db.run(items.add(job_id, token, found))

    async def list(
        self, *, job_id: int | None = None, collection: str | None = None, after: int = 0, limit: int = MAX_LIST
    ) -> Sequence[Item]:
        """Read items in the order they came: those that a job found first, or those of a collection."""
        return await self._db.run(items.list_items(job_id=job_id, collection=collection, after=after, limit=limit))

    async def export(
        self, collection: str | None = None, *, job_id: int | None = None, after: int = 0, page: int = _PAGE
    ) -> AsyncIterator[Item]:
        """Go through a whole collection, or all that a job found first, without holding it in memory.

        An item's id is where to go on after it, now or later: what is added meanwhile has a greater one.
        """
        while found := await self.list(collection=collection, job_id=job_id, after=after, limit=page):
            for item in found:
                yield item
            after = found[-1].id

    async def count(self, collection: str | None = None, *, job_id: int | None = None) -> ItemCount:
        """Count the items of a collection, or those a job found first; beyond 10,000 the answer is a lower bound."""
        return await self._db.run(items.count_items(collection, job_id))
