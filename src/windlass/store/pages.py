"""The crawled pages of a store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from windlass.core.audit import Actor
from windlass.core.tally import Tally
from windlass.core.webpage import WebPage
from windlass.store.calls import pages
from windlass.store.calls.audit import audited
from windlass.store.calls.reads import MAX_LIST

if TYPE_CHECKING:
    from windlass.store.database import Database

# A page may have half a megabyte.
_PART = 100


class SqlPages:
    """What crawls have found, each address once for each source."""

    def __init__(self, database: Database, actor: Actor | None = None) -> None:
        """Speak to `database`; `actor` is whom the audit log names."""
        self._db = database
        self._actor = actor

    async def list(self, *, source_id: str | None = None, after: int = 0, limit: int = MAX_LIST) -> Sequence[WebPage]:
        """Read pages in the order they were found, each with the beginning of its text."""
        return await self._db.run(pages.list_pages(source_id=source_id, after=after, limit=limit))

    async def search(
        self, wanted: str, *, source_id: str | None = None, after: int = 0, limit: int = MAX_LIST
    ) -> Sequence[WebPage]:
        """Read the pages that have all these words, without regard to case and accents; `word*` is any that begins so."""
        return await self._db.run(pages.search(wanted, source_id=source_id, after=after, limit=limit))

    async def get(self, page_id: int) -> WebPage:
        """Read a page with all of its text; raises PageNotFound."""
        return await self._db.run(pages.get(page_id))

    async def count(self, *, search: str | None = None, source_id: str | None = None) -> Tally:
        """Count all pages, those of a source or those with these words, up to a bound."""
        return await self._db.run(pages.count(search, source_id))

    async def delete(self, source_id: str) -> int:
        """Let go of all pages of a source, in small parts; says how many there were."""
        total = 0
        while gone := await self._db.run(audited(pages.delete(source_id, _PART), self._actor, pages.was_deleted(source_id))):
            total += gone
        return total
