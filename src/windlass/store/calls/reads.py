"""Reads: jobs, their runs, their dead letters, and counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from windlass.core.checks import check_range, check_text
from windlass.core.ids import MAX_JOB
from windlass.core.job import MAX_NAME, Count, DeadLetter, Execution, Job
from windlass.core.page import MOST_COUNTED, CappedCount
from windlass.errors import ExecutionNotFound, JobNotFound
from windlass.store import batches, rows
from windlass.store.calls.call import Call, single
from windlass.store.calls.move import possible
from windlass.store.rows import Row

MAX_LIST = 500
MAX_NUMBER = 2**31 - 1


def get_job(job_id: int) -> Call[Job]:
    """Read one job; raises JobNotFound."""

    def decode(found: Sequence[Row]) -> Job:
        if not found:
            raise JobNotFound(job_id)
        return rows.jobs(found)[0]

    return single("get_jobs", {"ids": batches.numbers(possible([job_id]))}, decode, is_read=True)


def get_jobs(ids: Sequence[int]) -> Call[list[Job]]:
    """Read jobs by number, in the order of their numbers; unknown ones are left out."""
    return single("get_jobs", {"ids": batches.numbers(possible(ids))}, rows.jobs, is_read=True)


def _known(job_id: int) -> int:
    """Put nothing in place of a number that no job can have."""
    return job_id if possible([job_id]) else 0


def list_executions(job_id: int, *, before: int = MAX_NUMBER, limit: int = MAX_LIST, offset: int = 0) -> Call[list[Execution]]:
    """Read a job's runs, the one that goes on first, then newest first."""
    check_range("limit", limit, 1, MAX_LIST)
    check_range("before", before, 1, MAX_NUMBER)
    check_range("offset", offset, 0, MAX_NUMBER - MAX_LIST)
    params = {"job_id": _known(job_id), "before": before, "limit": limit, "offset": offset, "depth": limit + offset}
    return single("list_executions", params, rows.executions, is_read=True)


def get_execution(job_id: int, number: int) -> Call[Execution]:
    """Read one run; raises ExecutionNotFound."""
    is_possible = 0 < job_id <= MAX_JOB and 0 < number <= MAX_NUMBER
    params = {"job_id": job_id if is_possible else 0, "number": number if is_possible else 0}

    def decode(found: Sequence[Row]) -> Execution:
        if not found:
            raise ExecutionNotFound(job_id, number)
        return rows.executions(found)[0]

    return single("get_execution", params, decode, is_read=True)


def count_executions(job_id: int) -> Call[int]:
    """Count the runs that are kept, with the one that goes on."""
    return single("count_executions", {"job_id": _known(job_id)}, lambda found: found[0][0], is_read=True)


def list_dead_letters(job_id: int) -> Call[list[DeadLetter]]:
    """Read a job's dead letters, oldest first."""
    return single("list_dead_letters", {"job_id": _known(job_id)}, rows.dead_letters, is_read=True)


def count_jobs() -> Call[list[Count]]:
    """Count jobs by task, lane, state and reason without reading the jobs."""
    return single("count_jobs", {}, rows.counts, is_read=True)


def count_task(task: str) -> Call[list[Count]]:
    """Count a task's jobs by lane, state and reason; templates and what is paused or cancelled are left out."""
    check_text("task", task, MAX_NAME)
    return single("count_task", {"task": task}, rows.counts, is_read=True)


def fold_counts(limit: int = 10_000) -> Call[int]:
    """Add count deltas to the counts they belong to."""
    check_range("limit", limit, 1, 1_000_000)
    return single("fold_counts", {"limit": limit}, lambda found: found[0][0])


_NOTHING: Mapping[str, object] = MappingProxyType({})


def count_capped(query: str, params: Mapping[str, object] = _NOTHING) -> Call[CappedCount]:
    """Count the rows of a query that stops at `:most`."""

    def decode(found: Sequence[Row]) -> CappedCount:
        [(rows,)] = found
        return CappedCount(min(rows, MOST_COUNTED), rows <= MOST_COUNTED)

    return single(query, {**params, "most": MOST_COUNTED + 1}, decode, is_read=True)
