"""The sources of a store."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from windlass.core.audit import Actor
from windlass.core.source import NewSource, Source
from windlass.core.tally import Tally
from windlass.store.calls import sources, tally
from windlass.store.calls.audit import audited
from windlass.store.calls.reads import MAX_LIST

if TYPE_CHECKING:
    from windlass.store.database import Database


class SqlSources:
    """What `crawl` crawls, by id."""

    def __init__(self, database: Database, actor: Actor | None = None) -> None:
        """Speak to `database`; `actor` is whom the audit log names."""
        self._db = database
        self._actor = actor

    async def upsert(self, source: NewSource) -> Source:
        """Keep a source under its id; metadata that is not given stays."""
        return await self._db.run(audited(sources.upsert(source), self._actor, sources.was_upserted))

    async def get(self, source_id: str) -> Source:
        """Read a source; raises SourceNotFound."""
        return await self._db.run(sources.get(source_id))

    async def list(self, *, after: str = "", limit: int = MAX_LIST) -> Sequence[Source]:
        """Read sources in the order of their ids, page by page."""
        return await self._db.run(sources.list_sources(after, limit))

    async def delete(self, source_id: str) -> Source:
        """Forget a source and say what it was; raises SourceNotFound."""
        return await self._db.run(audited(sources.delete(source_id), self._actor, sources.was_deleted))

    async def touch(self, source_id: str) -> Source:
        """Note that a source has run; raises SourceNotFound."""
        return await self._db.run(sources.touch(source_id))

    async def stale(self, before: datetime, *, after: Source | None = None, limit: int = MAX_LIST) -> Sequence[Source]:
        """Read sources that have not run since `before`, page by page: those that never ran first, then the longest ago."""
        return await self._db.run(sources.stale(before, after, limit))

    async def count(self) -> Tally:
        """Count them, up to a bound."""
        return await self._db.run(tally.count("count_sources"))
