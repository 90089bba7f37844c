"""Aging: which jobs have waited for long, and what they gain."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from windlass.store import batches
from windlass.store.calls.call import Call, single

MAX_FOUND = 10_000
MAX_BATCH = 500


class AgingJob(NamedTuple):
    """A job that has waited for long, and the priority it was seen with."""

    id: int
    priority: int


def pending_slices() -> Call[list[tuple[str, str]]]:
    """Name every lane and task with pending jobs."""
    return single("pending_slices", {}, lambda found: [(lane, task) for lane, task in found], is_read=True)


def aging_jobs(lane: str, task: str, most: int) -> Call[list[AgingJob]]:
    """Find jobs of priority `most` and below that are to be raised, the highest priority first."""
    params = {"lane": lane, "task": task, "most": most, "limit": MAX_FOUND}
    return single("aging_jobs", params, lambda found: [AgingJob._make(row) for row in found], is_read=True)


def age(jobs: Sequence[AgingJob]) -> Call[int]:
    """Raise jobs that still wait by the formula; returns how many gained."""
    return single("age", {"ids": batches.numbers(job.id for job in jobs)}, len)
