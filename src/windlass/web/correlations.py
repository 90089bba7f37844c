"""Correlations: every job that came of one action, and which came of which."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import Path, Query, Request

from windlass.core.access import Role
from windlass.core.ids import MAX_JOB, job_uuid
from windlass.core.job import MAX_KEY
from windlass.core.record import shaped
from windlass.core.related import Span
from windlass.errors import shown
from windlass.store.stored_jobs import StoredJobs
from windlass.web.errors import Refusal
from windlass.web.fields import Listed
from windlass.web.request_context import reader_of
from windlass.web.route import Route
from windlass.wire.jobs import TracedOut, TracedRunOut


class CorrelationOut(Listed):
    """The jobs of a correlation as a tree: each before its children, the oldest first."""

    correlation_id: str
    at: datetime
    """When this was read, in database time: how far runs that go on have come."""
    jobs: list[TracedOut]
    next: int | None
    """Send it as `after` for the next page; a parent on an earlier page does not count in `depth`."""


def _out(span: Span, at: datetime) -> TracedOut:
    job = span.job
    return shaped(
        TracedOut,
        job,
        id=job_uuid(job.id),
        number=job.id,
        parent_id=None if job.parent_id is None else job_uuid(job.parent_id),
        depth=span.depth,
        attempts=job.attempt,
        wait_ms=span.wait_ms,
        run_ms=span.run_ms(at),
        runs=tuple(shaped(TracedRunOut, run) for run in span.runs),
    )


async def get_correlation(
    request: Request,
    id: Annotated[str, Path(min_length=1, max_length=MAX_KEY)],  # noqa: A002 - the path's name
    after: Annotated[int, Query(ge=0, le=MAX_JOB, description="Only jobs with a higher number.")] = 0,
) -> CorrelationOut:
    """Trace an action: its jobs and which came of which; a job's own UUID finds the job and what came of it."""
    found = await StoredJobs(reader_of(request)).trace(id, after=after)
    if not found.spans and not after:
        raise Refusal(404, f"correlation {shown(id)} not found: no job has it; GET /api/v1/jobs has each job's correlation_id")
    jobs = [_out(span, found.at) for span in found.spans]
    last = None if found.is_complete else found.last_id
    is_all = found.is_complete and not after
    return CorrelationOut(correlation_id=id, at=found.at, jobs=jobs, total=len(jobs), is_total_exact=is_all, next=last)


ROUTES = (Route("GET", "/api/v1/correlations/{id}", Role.VIEWER, get_correlation, errors=(404,), is_costly=True),)
