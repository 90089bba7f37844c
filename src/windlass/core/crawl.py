"""How far a crawl has come: what its cursor holds, and how each page adds to it."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from windlass.core.webpage import NewPage

MAX_PAGES = 10_000
MAX_DEPTH = 20
MAX_NOTES = 20
_MAX_NOTE = 300


class Holder(NamedTuple):
    """The job, lease and source that a crawl runs under."""

    job_id: int
    token: int
    source_id: str


class Address(NamedTuple):
    """The next address of a crawl, with what is known of its page from before."""

    number: int
    url: str
    depth: int
    etag: str | None = None
    last_modified: str | None = None
    links: str | None = None
    """A JSON list; None when the page is not known."""

    @property
    def is_start(self) -> bool:
        """Whether the crawl begins here."""
        return self.number == 1


class Visit(NamedTuple):
    """What came of asking for an address. Without a page, error or change it was crawled and not indexed."""

    address: Address
    url: str
    """Where it led, after redirects."""
    page: NewPage | None = None
    is_unchanged: bool = False
    """The server answered so, and what is kept stays."""
    is_gone: bool = False
    """What is kept of the page is to be forgotten."""
    error: str | None = None
    is_outside: bool = False
    """It led away from the site, so nothing was crawled."""
    links: tuple[str, ...] = ()
    """Where to go on from here."""


class CrawlState(NamedTuple):
    """The counts of a crawl, over all of its runs; they travel in the job's cursor."""

    url: str
    known: int = 0
    """How many addresses it has found and may ask for."""
    crawled: int = 0
    indexed: int = 0
    """Pages that were new or have changed."""
    errors: int = 0
    skipped: int = 0
    """Addresses that led elsewhere, or to a page that was crawled already."""
    is_done: bool = False
    notes: tuple[str, ...] = ()

    @classmethod
    def read(cls, cursor: str | None, url: str) -> CrawlState | None:
        """Read a cursor; None when there is none, or when it belongs to a crawl of another address."""
        try:
            found: Any = json.loads(cursor or "null")
            state = cls(**{**found, "notes": tuple(found["notes"])})
        except (ValueError, TypeError, KeyError):
            return None
        return state if state.url == url else None

    def cursor(self) -> str:
        """Write it down."""
        return json.dumps(self._asdict(), ensure_ascii=False, separators=(",", ":"))

    def message(self) -> str:
        """Describe it for people."""
        return f"{self.crawled} crawled, {self.indexed} indexed, {self.errors} errors, {self.skipped} skipped"

    def after(self, visit: Visit, *, is_indexed: bool, is_twin: bool, added: int) -> CrawlState:
        """Add a visit: every address counts once, as crawled, skipped or an error."""
        known = self._replace(known=self.known + added)
        if visit.error is not None:
            note = f"{visit.address.url[: _MAX_NOTE // 2]}: {visit.error}"[:_MAX_NOTE]
            return known._replace(errors=self.errors + 1, notes=(*self.notes, note)[:MAX_NOTES])
        if visit.is_outside or is_twin:
            return known._replace(skipped=self.skipped + 1)
        return known._replace(crawled=self.crawled + 1, indexed=self.indexed + is_indexed)
