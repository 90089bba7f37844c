"""A pass of aging over all pending jobs, in short transactions."""

from __future__ import annotations

from datetime import datetime

from windlass.core.aging import TOP
from windlass.core.checks import check_range
from windlass.store.calls import aging
from windlass.store.database import Database


async def age(database: Database, limit: int, now: datetime | None = None) -> int:
    """Raise jobs that have waited for long, `limit` in a transaction; returns how many."""
    check_range("limit", limit, 1, aging.MAX_BATCH)
    slices = await database.run(aging.pending_slices())
    return sum([await _age_slice(database, lane, task, limit=limit, now=now) for lane, task in slices])


async def _age_slice(database: Database, lane: str, task: str, *, limit: int, now: datetime | None) -> int:
    """Go from the highest priority down: a job moves up and so out of the way, and the pass meets it once."""
    aged, most = 0, TOP - 1
    while found := await database.run(aging.aging_jobs(lane, task, most, now)):
        changed = 0
        for start in range(0, len(found), limit):
            changed += await database.run(aging.age(found[start : start + limit], now))
        aged += changed
        # Where nothing moved, others hold the rows: asking for the same ones again would spin.
        most = found[-1].priority - (not changed)
        if len(found) < aging.MAX_FOUND:
            break
    return aged
