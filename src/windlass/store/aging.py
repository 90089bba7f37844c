"""A pass of aging over all pending jobs, in short transactions."""

from __future__ import annotations

import json

from windlass.core.aging import TOP
from windlass.core.checks import check_range
from windlass.core.chore import Swept
from windlass.store.calls import aging
from windlass.store.noun import Runner


async def age(store: Runner, limit: int) -> int:
    """Raise jobs that have waited for long, `limit` in a transaction; returns how many."""
    part = await age_some(store, None, limit=limit)
    aged = part.rows
    while part.cursor is not None:
        part = await age_some(store, part.cursor, limit=limit)
        aged += part.rows
    return aged


async def age_some(store: Runner, cursor: str | None, *, limit: int = aging.MAX_BATCH, at_most: int = aging.MAX_FOUND) -> Swept:
    """Go on with a pass from where the last part ended, for about `at_most` jobs."""
    check_range("limit", limit, 1, aging.MAX_BATCH)
    slices = await store.run(aging.pending_slices())
    lane, task, most = json.loads(cursor) if cursor else ("", "", TOP - 1)
    # What has emptied meanwhile sends us back to the beginning, where little is left to do.
    first = slices.index((lane, task)) if (lane, task) in slices else 0
    aged = 0
    for place in slices[first:]:
        level = most if place == (lane, task) else TOP - 1
        while level is not None:
            if aged >= at_most:
                return Swept(aged, json.dumps([*place, level]))
            changed, level = await _age_some(store, place, level, limit=limit)
            aged += changed
    return Swept(aged)


async def _age_some(store: Runner, place: tuple[str, str], most: int, *, limit: int) -> tuple[int, int | None]:
    """Go from the highest priority down: a job moves up and so out of the way, and the pass meets it once."""
    found = await store.run(aging.aging_jobs(*place, most))
    changed = 0
    for start in range(0, len(found), limit):
        changed += await store.run(aging.age(found[start : start + limit]))
    if len(found) < aging.MAX_FOUND:
        return changed, None
    # Where nothing moved, others hold the rows: asking for the same ones again would spin.
    return changed, found[-1].priority - (not changed)
