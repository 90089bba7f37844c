"""Retention, for asyncio: a pass over the tables in short transactions."""

from __future__ import annotations

import json

from windlass.core.cadence import EPOCH, MICROSECOND
from windlass.core.checks import check_range
from windlass.core.chore import Swept
from windlass.core.job import CLOSED, JobState
from windlass.core.retention import DEFAULT, Pruned, Retention
from windlass.store import batches
from windlass.store.calls import retention
from windlass.store.noun import Noun

MAX_BATCH = 500
_PAGES = 50
_PARTS = ("executions", *sorted(CLOSED), "letters")
"""Runs first: what is left of a job's history is then small enough to go with the job."""


class Pruning(Noun):
    """Deletes history that need not be kept."""

    async def prune(self, rules: Retention = DEFAULT, *, limit: int = 200) -> Pruned:
        """Delete by the rules, in batches of about `limit` jobs; any number of instances may do it at once."""
        gone = dict.fromkeys(_PARTS, 0)
        cursor: str | None = None
        while True:
            part = json.loads(cursor)[0] if cursor else _PARTS[0]
            swept = await self.prune_some(rules, cursor, limit=limit, pages=1)
            gone[part] += swept.rows
            cursor = swept.cursor
            if cursor is None:
                return Pruned(gone["executions"], sum(gone[state] for state in CLOSED), gone["letters"])

    async def prune_some(
        self, rules: Retention = DEFAULT, cursor: str | None = None, *, limit: int = 200, pages: int = _PAGES
    ) -> Swept:
        """Go on with a pass from where the last part ended, for so many pages; without a cursor it begins anew."""
        check_range("limit", limit, 1, MAX_BATCH)
        part: str = _PARTS[0]
        place: list[int] = []
        if cursor is not None:
            part, *place = json.loads(cursor)
        pruned = 0
        for _ in range(pages):
            gone, following = await self._prune_page(part, place, rules, limit=limit)
            pruned += gone
            if following is None:
                if part == _PARTS[-1]:
                    return Swept(pruned)
                part, following = _PARTS[_PARTS.index(part) + 1], []
            place = following
        return Swept(pruned, json.dumps([part, *place]))

    async def _prune_page(self, part: str, place: list[int], rules: Retention, *, limit: int) -> tuple[int, list[int] | None]:
        """Delete a page's worth; returns how many, and where the next page of the same part begins."""
        match part:
            case "executions":
                return await self._prune_executions(rules, place, limit)
            case "letters":
                gone = await self._run(retention.prune_letters(rules.keep_dead, limit))
                return gone, place if gone else None
            case _:
                return await self._prune_jobs(JobState(part), rules, place, limit=limit)

    async def _prune_executions(self, rules: Retention, place: list[int], limit: int) -> tuple[int, list[int] | None]:
        [after] = place or [0]
        page = await self._run(retention.long_histories(rules, after, limit))
        gone = 0
        for batch in retention.parts(page.runs):
            gone += await self._run(retention.prune_executions(batch))
        # A long history goes in parts. What could not be deleted is locked by another instance, which does the same.
        if gone and any(runs.length == retention.MAX_RUNS for runs in page.runs):
            return gone, [after]
        return gone, None if page.last_id is None else [page.last_id]

    async def _prune_jobs(
        self, state: JobState, rules: Retention, place: list[int], *, limit: int
    ) -> tuple[int, list[int] | None]:
        closed_us, after = place or (0, 0)
        from_ = (EPOCH + closed_us * MICROSECOND, after)
        page = await self._run(retention.old_jobs(state, rules.keep, from_, limit=limit))
        if not page:
            return 0, None
        ids = [job.id for job in page if job.is_prunable]
        gone = await self._run(retention.prune_jobs(ids, rules.keep)) if ids else 0
        return gone, [batches.microseconds(page[-1].closed_at), page[-1].id]
