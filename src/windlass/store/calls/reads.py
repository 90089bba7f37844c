"""The questions: jobs, their runs, what died, and how many there are."""

from __future__ import annotations

from collections.abc import Sequence

from windlass.core.checks import check_range
from windlass.core.job import Count, DeadLetter, Execution, Job, JobState
from windlass.store import documents, rows
from windlass.store.calls.call import Call, single
from windlass.store.calls.move import possible

MAX_LIST = 500


def get_jobs(ids: Sequence[int]) -> Call[list[Job]]:
    """Read jobs by number; unknown ones are left out."""
    return single("get_jobs", {"ids": documents.numbers(possible(ids))}, rows.jobs, is_read=True)


def list_jobs(
    *, state: JobState | None = None, task: str | None = None, after: int = 0, limit: int = MAX_LIST
) -> Call[list[Job]]:
    """Read jobs in number order, page by page."""
    check_range("limit", limit, 1, MAX_LIST)
    params = {"state": state, "task": task, "after": after, "limit": limit}
    return single("list_jobs", params, rows.jobs, is_read=True)


def list_executions(job_id: int, *, before: int = 2**31 - 1, limit: int = MAX_LIST) -> Call[list[Execution]]:
    """Read a job's ended runs, newest first."""
    check_range("limit", limit, 1, MAX_LIST)
    params = {"job_id": job_id, "before": before, "limit": limit}
    return single("list_executions", params, rows.executions, is_read=True)


def list_dead_letters(job_id: int) -> Call[list[DeadLetter]]:
    """Read a job's dead letters, oldest first."""
    return single("list_dead_letters", {"job_id": job_id}, rows.dead_letters, is_read=True)


def count_jobs() -> Call[list[Count]]:
    """Count jobs by task, lane, state and reason without reading the jobs."""
    return single("count_jobs", {}, rows.counts, is_read=True)


def fold_counts(limit: int) -> Call[int]:
    """Add count deltas to the counts they belong to."""
    check_range("limit", limit, 1, 1_000_000)
    return single("fold_counts", {"limit": limit}, lambda found: found[0][0])
