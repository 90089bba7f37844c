"""The verbs of sources."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from windlass.core.source import NewSource, Source
from windlass.core.tally import Tally


class Sources(Protocol):
    """What `crawl` crawls, by id."""

    async def upsert(self, source: NewSource) -> Source:
        """Keep a source under its id; metadata that is not given stays."""
        ...

    async def get(self, source_id: str) -> Source:
        """Read a source; raises SourceNotFound."""
        ...

    async def list(self, *, after: str = "", limit: int = 500) -> Sequence[Source]:
        """Read sources in the order of their ids, page by page."""
        ...

    async def delete(self, source_id: str) -> Source:
        """Forget a source and say what it was; raises SourceNotFound."""
        ...

    async def touch(self, source_id: str) -> Source:
        """Note that a source has run; raises SourceNotFound."""
        ...

    async def stale(self, before: datetime, *, after: Source | None = None, limit: int = 500) -> Sequence[Source]:
        """Read sources that have not run since `before`, page by page: those that never ran first, then the longest ago."""
        ...

    async def count(self) -> Tally:
        """Count them, up to a bound."""
        ...
