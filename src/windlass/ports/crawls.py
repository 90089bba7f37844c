"""The verbs of a crawl that goes on; each needs the lease of its job and raises LeaseLost without it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    # Whoever only enqueues does not pay for what only crawls need.
    from windlass.core.crawl import Address, CrawlState, Holder, Visit


class Crawls(Protocol):
    """Where crawls go and have been; pages, counts and cursor change together."""

    async def begin(self, holder: Holder, url: str) -> CrawlState:
        """Start anew at an address; what an earlier crawl of this job left is forgotten."""
        ...

    async def next(self, holder: Holder) -> Address | None:
        """Say where a crawl goes on; None when it has been everywhere."""
        ...

    async def record(self, holder: Holder, state: CrawlState, visit: Visit, *, max_pages: int) -> CrawlState:
        """Keep what a visit brought, add it to the counts and move the cursor, in one transaction."""
        ...

    async def complete(self, holder: Holder, state: CrawlState) -> CrawlState:
        """Note that a crawl has been everywhere, and when its source was crawled last."""
        ...
