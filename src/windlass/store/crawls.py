"""The crawls of a store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windlass.core.crawl import Address, CrawlState, Holder, Visit
from windlass.store.calls import crawls

if TYPE_CHECKING:
    from windlass.store.database import Database


class SqlCrawls:
    """Where crawls go and have been; pages, counts and cursor change together."""

    def __init__(self, database: Database) -> None:
        """Speak to `database`."""
        self._db = database

    async def begin(self, holder: Holder, url: str) -> CrawlState:
        """Start anew at an address; what an earlier crawl of this job left is forgotten."""
        return await self._db.run(crawls.begin(holder, url))

    async def next(self, holder: Holder) -> Address | None:
        """Say where a crawl goes on; None when it has been everywhere."""
        return await self._db.run(crawls.next_address(holder))

    async def record(self, holder: Holder, state: CrawlState, visit: Visit, *, max_pages: int) -> CrawlState:
        """Keep what a visit brought, add it to the counts and move the cursor, in one transaction."""
        return await self._db.run(crawls.record(holder, state, visit, max_pages=max_pages))

    async def complete(self, holder: Holder, state: CrawlState) -> CrawlState:
        """Note that a crawl has been everywhere, and when its source was crawled last."""
        return await self._db.run(crawls.complete(holder, state))
