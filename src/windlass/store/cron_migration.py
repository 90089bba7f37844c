"""The interval scheduler's cron migration, for asyncio."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime
from functools import partial

from windlass.core.audit import Actor
from windlass.core.cron_migration import Conversion
from windlass.store.calls import cron_migration
from windlass.store.calls.audit import audited
from windlass.store.database import Database


class SqlCronMigration:
    """Cron expressions that are plain intervals become intervals, and go back."""

    def __init__(self, database: Database, actor: Actor | None) -> None:
        """Speak to `database`; `actor` is whom the audit log names."""
        self._db = database
        self._actor = actor

    async def convert(
        self, *, dry_run: bool = False, limit: int = cron_migration.MAX_PAGE, now: datetime | None = None
    ) -> AsyncIterator[Conversion]:
        """Convert what converts exactly, a page in a transaction, and say of every cron job what became of it."""
        async for each in self._pages(dry_run=dry_run, backwards=False, limit=limit, now=now):
            yield each

    async def undo(
        self, *, dry_run: bool = False, limit: int = cron_migration.MAX_PAGE, now: datetime | None = None
    ) -> AsyncIterator[Conversion]:
        """Give converted jobs their cron back, unless their cadence was edited since."""
        async for each in self._pages(dry_run=dry_run, backwards=True, limit=limit, now=now):
            yield each

    async def _pages(self, *, dry_run: bool, backwards: bool, limit: int, now: datetime | None) -> AsyncIterator[Conversion]:
        after: int | None = 0
        tell = partial(cron_migration.was_converted, backwards=backwards)
        while after is not None:
            call = cron_migration.convert(after, limit, dry_run=dry_run, backwards=backwards, now=now)
            page = await self._db.run(call if dry_run else audited(call, self._actor, tell, now))
            for each in page.jobs:
                yield each
            after = page.next_after
