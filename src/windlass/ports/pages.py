"""The verbs of crawled pages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from windlass.core.tally import Tally

if TYPE_CHECKING:
    # Whoever only enqueues does not pay for what only crawls need.
    from windlass.core.webpage import WebPage


class Pages(Protocol):
    """What crawls have found, each address once for each source."""

    async def list(self, *, source_id: str | None = None, after: int = 0, limit: int = 500) -> Sequence[WebPage]:
        """Read pages in the order they were found, each with the beginning of its text."""
        ...

    async def search(self, wanted: str, *, source_id: str | None = None, after: int = 0, limit: int = 500) -> Sequence[WebPage]:
        """Read the pages that have all these words, without regard to case and accents; `word*` is any that begins so.

        Anything may be asked for: what is no word is left out, and without a word nothing is found.
        """
        ...

    async def get(self, page_id: int) -> WebPage:
        """Read a page with all of its text; raises PageNotFound."""
        ...

    async def count(self, *, search: str | None = None, source_id: str | None = None) -> Tally:
        """Count all pages, those of a source or those with these words, up to a bound."""
        ...

    async def delete(self, source_id: str) -> int:
        """Let go of all pages of a source, in small parts; says how many there were."""
        ...
