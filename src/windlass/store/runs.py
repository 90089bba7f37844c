"""How runs went."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from windlass.core.runs import JobStats, Minute, Priorities, QueueStats, SchedulerMetrics, Total
from windlass.store.calls import runs

if TYPE_CHECKING:
    from windlass.store.database import Database


class SqlRuns:
    """Totals that survive pruning, minutes with percentiles, and statistics made of both: exact as soon as a run has ended."""

    def __init__(self, database: Database) -> None:
        """Speak to `database`."""
        self._db = database

    async def totals(self) -> list[Total]:
        """Read all runs since the beginning, by task, status and reason."""
        return await self._db.run(runs.totals())

    async def minutes(self, since: datetime, until: datetime, *, task: str | None = None) -> list[Minute]:
        """Read the minutes from `since` until before `until`, oldest first; without a task, all tasks together."""
        return await self._db.run(runs.minutes(task, since, until))

    async def fold(self, limit: int = 10_000) -> int:
        """Fold counted runs; returns how many rows were folded."""
        return await self._db.run(runs.fold_runs(limit))

    async def prune_minutes(self, keep: timedelta = runs.KEEP_MINUTES, *, limit: int = 10_000) -> int:
        """Delete minutes older than `keep`; returns how many."""
        return await self._db.run(runs.prune_minutes(keep, limit))

    async def job(self, job_id: int) -> JobStats:
        """Add up the kept runs of one job; raises JobNotFound."""
        return await self._db.run(runs.job_stats(job_id))

    async def metrics(self) -> SchedulerMetrics:
        """Read jobs by state and runs since the beginning."""
        return await self._db.run(runs.metrics())

    async def queue(self) -> QueueStats:
        """Read how many jobs wait, run and will be tried again, and since when the first has been due."""
        return await self._db.run(runs.queue())

    async def priorities(self) -> Priorities:
        """Count pending jobs by priority, as far as can be done quickly."""
        return await self._db.run(runs.priorities())
