"""The task `crawl`: goes through a source page by page, and on from its cursor when it was cut off."""

from __future__ import annotations

from typing import Annotated, NamedTuple

from pydantic import AfterValidator, Field, StringConstraints

from windlass.app import Windlass
from windlass.core.crawl import MAX_DEPTH, MAX_PAGES, CrawlState, Holder
from windlass.core.current import current_job
from windlass.core.signals import Retry
from windlass.core.source import MAX_SOURCE_NAME, MAX_URL
from windlass.errors import SourceNotFound
from windlass.packs.crawl.errors import CrawlRefused, SiteUnavailable
from windlass.packs.crawl.politeness import politeness
from windlass.packs.crawl.site import Site
from windlass.packs.outgoing import FINAL, UrlRefused, outgoing, parse_url
from windlass.store import Store
from windlass.worker.context import JobContext

TASK = "crawl"
PAGES = 50
DEPTH = 2
# Ten thousand pages of a site that asks for some seconds between them.
_TIMEOUT = "24h"


def _checked(url: str) -> str:
    try:
        normal_url(url)
    except UrlRefused as error:
        raise ValueError(error.why or str(error)) from None
    return url


def normal_url(url: str) -> str:
    """Write an address in its normal form; raises UrlRefused."""
    normal = str(parse_url(url))
    if len(normal) > MAX_URL:
        raise UrlRefused(f"url: must have at most {MAX_URL} characters, with what is no ASCII written as %XX")
    return normal


SourceText = Annotated[str, StringConstraints(min_length=1, max_length=MAX_SOURCE_NAME)]
WebAddress = Annotated[str, StringConstraints(max_length=MAX_URL), AfterValidator(_checked)]
Pages = Annotated[int, Field(ge=1, le=MAX_PAGES)]
Depth = Annotated[int, Field(ge=0, le=MAX_DEPTH)]


class CrawlLimits(NamedTuple):
    """How far a crawl may go."""

    pages: int = PAGES
    depth: int = DEPTH


def install(app: Windlass) -> None:
    """Declare the task; it finds its sources and keeps its pages in the database of the application it runs in."""

    @app.task(name=TASK, timeout=_TIMEOUT, retry={"profile": "crawl"}, never_retry=[CrawlRefused, *FINAL], subject=_subject)
    async def crawl(  # noqa: PLR0917 - what the payloads of both crawlers have, and the limits
        ctx: JobContext,
        source_id: SourceText | None = None,
        source_name: SourceText | None = None,  # noqa: ARG001 - the interval scheduler sends it along
        url: WebAddress | None = None,
        max_pages: Pages = PAGES,
        max_depth: Depth = DEPTH,
    ) -> dict[str, int]:
        """Crawl a source from its url, or from the given one; without an id, the source is the job's subject."""
        run = Crawl(app, await app.store(), source_id or ctx.subject, CrawlLimits(max_pages, max_depth))
        try:
            state = await run.run(ctx, url)
        except SiteUnavailable as error:
            if error.wait_s is None:
                raise
            raise Retry(str(error), after=error.wait_s) from error
        ctx.items_crawled, ctx.items_indexed = state.crawled, state.indexed
        ctx.metadata = {"errors": state.errors, "skipped": state.skipped, "notes": list(state.notes)}
        return {"crawled": state.crawled, "indexed": state.indexed, "errors": state.errors, "skipped": state.skipped}


def _subject(source_id: str | None, **_rest: object) -> str | None:
    return source_id


class Crawl:
    """One run of a crawl."""

    def __init__(self, app: Windlass, store: Store, source_id: str | None, limits: CrawlLimits) -> None:
        """Crawl a source within limits."""
        self._app = app
        self._store = store
        self._source_id = source_id
        self._limits = limits

    async def run(self, ctx: JobContext, url: str | None) -> CrawlState:
        """Visit what is left; the counts are those of the whole crawl."""
        source_id, start = await self._start(url)
        holder, crawls = _holder(source_id), self._store.crawls
        state = CrawlState.read(ctx.cursor, start) or await crawls.begin(holder, start)
        site = self._site()
        while not state.is_done:
            address = await crawls.next(holder)
            if address is None:
                state = await crawls.complete(holder, state)
            else:
                visit = await site.visit(address)
                state = await crawls.record(holder, state, visit, max_pages=self._limits.pages)
        return state

    async def _start(self, url: str | None) -> tuple[str, str]:
        """Find out what to crawl, and from where."""
        if self._source_id is None:
            raise CrawlRefused("the job names no source to crawl: give it a source_id or a subject")
        try:
            source = await self._store.sources.get(self._source_id)
        except SourceNotFound:
            raise CrawlRefused(
                f"source {self._source_id!r} is not known: make it with POST /api/v1/sources or `windlass sources set`"
            ) from None
        return source.id, normal_url(url or source.url)

    def _site(self) -> Site:
        settings = self._app.settings
        pause_s = settings.crawl_delay.total_seconds()
        return Site(outgoing(self._app), politeness(), pause_s=pause_s, max_depth=self._limits.depth)


def _holder(source_id: str) -> Holder:
    """Return the right to write for the job whose handler calls: its pages are kept under its lease."""
    job = current_job()
    if job is None:
        raise CrawlRefused("a crawl runs as a job: its pages are kept under the job's lease")
    return Holder(job.id, job.token, source_id)
