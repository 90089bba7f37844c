"""How runs went."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Protocol

from windlass.core.runs import JobStats, Minute, Priorities, QueueStats, SchedulerMetrics, Total


class Runs(Protocol):
    """Totals that survive pruning, minutes with percentiles, and statistics made of both: exact as soon as a run has ended."""

    async def totals(self) -> list[Total]:
        """Read all runs since the beginning, by task, status and reason."""
        ...

    async def minutes(self, since: datetime, until: datetime, *, task: str | None = None) -> list[Minute]:
        """Read the minutes from `since` until before `until`, oldest first; without a task, all tasks together."""
        ...

    async def fold(self, limit: int = 10_000) -> int:
        """Fold counted runs; returns how many rows were folded."""
        ...

    async def prune_minutes(self, keep: timedelta = timedelta(days=7), *, limit: int = 10_000) -> int:
        """Delete minutes older than `keep`; returns how many."""
        ...

    async def job(self, job_id: int) -> JobStats:
        """Add up the kept runs of one job; raises JobNotFound."""
        ...

    async def metrics(self) -> SchedulerMetrics:
        """Read jobs by state and runs since the beginning."""
        ...

    async def queue(self) -> QueueStats:
        """Read how many jobs wait, run and will be tried again, and since when the first has been due."""
        ...

    async def priorities(self) -> Priorities:
        """Count pending jobs by priority, as far as can be done quickly."""
        ...
