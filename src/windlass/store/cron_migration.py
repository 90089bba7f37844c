"""The interval scheduler's cron migration."""

from __future__ import annotations

from collections.abc import AsyncIterator

from windlass.core.cron_migration import Conversion
from windlass.store.calls import cron_migration
from windlass.store.noun import Noun


class CronMigration(Noun):
    """Cron expressions that are plain intervals become intervals, and go back."""

    async def convert(self, *, dry_run: bool = False, limit: int = cron_migration.MAX_PAGE) -> AsyncIterator[Conversion]:
        """Convert what converts exactly, a page in a transaction, and return the conversion of every cron job."""
        async for each in self._pages(dry_run=dry_run, backwards=False, limit=limit):
            yield each

    async def undo(self, *, dry_run: bool = False, limit: int = cron_migration.MAX_PAGE) -> AsyncIterator[Conversion]:
        """Give converted jobs their cron back, unless their cadence was edited since."""
        async for each in self._pages(dry_run=dry_run, backwards=True, limit=limit):
            yield each

    async def _pages(self, *, dry_run: bool, backwards: bool, limit: int) -> AsyncIterator[Conversion]:
        after: int | None = 0
        while after is not None:
            page = await self._run(cron_migration.convert(after, limit, dry_run=dry_run, backwards=backwards))
            for each in page.jobs:
                yield each
            after = page.next_after
