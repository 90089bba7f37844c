"""Retention, for asyncio: a pass over the tables in short transactions."""

from __future__ import annotations

from datetime import datetime

from windlass.core.cadence import EPOCH
from windlass.core.checks import check_range
from windlass.core.job import CLOSED, JobState
from windlass.core.retention import DEFAULT, Pruned, Retention
from windlass.store.calls import retention
from windlass.store.database import Database

MAX_BATCH = 500


class SqlRetention:
    """Lets go of what need not be kept."""

    def __init__(self, database: Database) -> None:
        """Speak to `database`."""
        self._db = database

    async def prune(self, rules: Retention = DEFAULT, *, limit: int = 200, now: datetime | None = None) -> Pruned:
        """Delete by the rules, in batches of about `limit` jobs; any number of instances may do it at once.

        Runs first: what is left of a job's history is then small enough to go with the job.
        """
        check_range("limit", limit, 1, MAX_BATCH)
        executions = await self._prune_executions(rules, limit, now)
        jobs = sum([await self._prune_jobs(state, rules, limit, now) for state in sorted(CLOSED)])
        return Pruned(executions, jobs, await self._prune_letters(rules, limit, now))

    async def _prune_executions(self, rules: Retention, limit: int, now: datetime | None) -> int:
        pruned = 0
        after: int | None = 0
        while after is not None:
            page = await self._db.run(retention.long_histories(rules, after, limit, now))
            gone = 0
            for batch in retention.batches(page.runs):
                gone += await self._db.run(retention.prune_executions(batch))
            pruned += gone
            # A long history goes in parts. What nobody could delete is locked by another instance, which does the same.
            if not (gone and any(runs.length == retention.MAX_RUNS for runs in page.runs)):
                after = page.last_id
        return pruned

    async def _prune_jobs(self, state: JobState, rules: Retention, limit: int, now: datetime | None) -> int:
        pruned = 0
        after = (EPOCH, 0)
        while page := await self._db.run(retention.old_jobs(state, rules.keep, after, limit=limit, now=now)):
            if ids := [job.id for job in page if job.is_prunable]:
                pruned += await self._db.run(retention.prune_jobs(ids, rules.keep, now))
            after = (page[-1].closed_at, page[-1].id)
        return pruned

    async def _prune_letters(self, rules: Retention, limit: int, now: datetime | None) -> int:
        pruned = 0
        while gone := await self._db.run(retention.prune_letters(rules.keep_dead, limit, now)):
            pruned += gone
        return pruned
