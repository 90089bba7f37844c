"""The interval scheduler's cron migration."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime
from typing import Protocol

from windlass.core.cron_migration import Conversion


class CronMigration(Protocol):
    """Cron expressions that are plain intervals become intervals, and go back."""

    def convert(self, *, dry_run: bool = False, limit: int = ..., now: datetime | None = None) -> AsyncIterator[Conversion]:
        """Convert what converts exactly, a page in a transaction, and say of every cron job what became of it."""
        ...

    def undo(self, *, dry_run: bool = False, limit: int = ..., now: datetime | None = None) -> AsyncIterator[Conversion]:
        """Give converted jobs their cron back, unless their cadence was edited since."""
        ...
