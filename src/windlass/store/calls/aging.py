"""Aging, one lane and task after the other, each batch in a transaction of its own."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from windlass.core.aging import TOP
from windlass.core.checks import check_range
from windlass.store import documents, rows
from windlass.store.calls.call import Call, Step, Steps, single

MAX_BATCH = 1000


class Batch(NamedTuple):
    """How many jobs gained priority, and from which priority on there may be more."""

    aged: int
    next_priority: int | None


def pending_slices() -> Call[list[tuple[str, str]]]:
    """Name every lane and task with pending jobs."""
    return single("pending_slices", {}, lambda found: [(lane, task) for lane, task in found], is_read=True)


def age(lane: str, task: str, *, most: int = TOP - 1, limit: int = MAX_BATCH, now: datetime | None = None) -> Call[Batch]:
    """Raise old jobs of priority `most` and below, the highest first.

    A job moves up and so out of the way of the batch that follows: a pass meets each job once.
    """
    check_range("limit", limit, 1, MAX_BATCH)

    def steps() -> Steps[Batch]:
        params = {"lane": lane, "task": task, "most": most, "limit": limit, "now": now}
        found = yield Step("aging_jobs", params)
        if not found:
            return Batch(0, None)
        changed = len((yield Step("age", {"ids": documents.numbers(rows.ids(found)), "now": now})))
        # Where nothing moved, others hold the rows: asking for the same ones again would spin.
        lowest = found[-1][1] - (not changed)
        return Batch(changed, lowest if len(found) == limit else None)

    return Call(steps)
