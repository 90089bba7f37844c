"""The state of a job when its holder reports: locked first, then read."""

from __future__ import annotations

from windlass.core.ids import MAX_JOB
from windlass.core.job import Claimed, JobState
from windlass.core.report import Case, EndedRun
from windlass.store import batches
from windlass.store.calls.call import Step, Steps
from windlass.store.rows import CLAIMED, CLAIMED_WIDTH, SHAPES, Row, Shape

SHAPES |= {
    "report_case": Shape(
        (*CLAIMED.instants, CLAIMED_WIDTH, CLAIMED_WIDTH + 7),
        (CLAIMED_WIDTH + 2, CLAIMED_WIDTH + 3),
    ),
    "report_past": Shape((), (3,)),
}


def read_case(job_id: int, *, key: str | None = None, worker: str | None = None) -> Steps[Case | None]:
    """Lock a job and read what a report must know; None when there is no such job. `worker` is the fence without a token."""
    if not 0 < job_id <= MAX_JOB:
        return None
    yield Step("lock_jobs", {"ids": batches.numbers([job_id])})
    for row in (yield Step("report_case", {"id": job_id, "key": key})):
        case = _case(row)
        if worker is None and case.has_lease:
            return case
        [past] = yield Step("report_past", {"id": job_id, "worker": worker})
        return case._replace(past=EndedRun._make(past))
    return None


def _case(row: Row) -> Case:
    started_at, state, *rest = row[CLAIMED_WIDTH:]
    return Case(Claimed._make(row[:CLAIMED_WIDTH]), started_at, JobState(state), *rest)
