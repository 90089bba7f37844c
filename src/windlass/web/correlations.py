"""Correlations: every job that came of one action, and which came of which."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated
from uuid import UUID

from fastapi import Path, Query, Request
from pydantic import BaseModel

from windlass.core.access import Role
from windlass.core.ids import MAX_JOB, job_uuid
from windlass.core.job import MAX_KEY, JobState, RunReason, RunStatus, WaitReason
from windlass.core.related import JobRun, Span
from windlass.errors import shown
from windlass.web.errors import Refusal
from windlass.web.fields import Listed
from windlass.web.request_context import reader_of
from windlass.web.route import Route


class TracedRunOut(BaseModel):
    """A run of a traced job that has ended."""

    number: int
    attempt: int
    status: RunStatus
    reason: RunReason | None
    worker: str
    started_at: datetime
    finished_at: datetime
    wait_ms: int
    duration_ms: int
    error: str | None


class TracedOut(BaseModel):
    """A job of a correlation; GET its number for the rest."""

    id: UUID
    number: int
    task: str
    lane: str
    state: JobState
    wait_reason: WaitReason | None
    parent_id: UUID | None
    """The job that enqueued it, which may belong to another correlation."""
    depth: int
    """How far it is from a job without a parent here; children follow their parent."""
    attempts: int
    created_at: datetime
    run_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    """When its last run ended."""
    last_error: str | None
    closed_at: datetime | None
    """When it was over for good."""
    wait_ms: int | None
    """How long it waited from the time it was due until its first run; None before that."""
    run_ms: int
    """How long it has run in all, the run that goes on included."""
    executions: int
    """How many runs have begun."""
    worker: str | None
    """Who runs it now."""
    runs: list[TracedRunOut]
    """The newest ended runs, at most 10, the oldest first."""


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
    return TracedOut(
        id=job_uuid(job.id),
        number=job.id,
        task=job.task,
        lane=job.lane,
        state=job.state,
        wait_reason=job.wait_reason,
        parent_id=None if job.parent_id is None else job_uuid(job.parent_id),
        depth=span.depth,
        attempts=job.attempt,
        created_at=job.created_at,
        run_at=job.run_at,
        started_at=job.started_at,
        finished_at=job.finished_at,
        last_error=job.last_error,
        closed_at=job.closed_at,
        wait_ms=span.wait_ms,
        run_ms=span.run_ms(at),
        executions=job.executions,
        worker=job.worker,
        runs=[_run(run) for run in span.runs],
    )


def _run(run: JobRun) -> TracedRunOut:
    return TracedRunOut(
        number=run.number,
        attempt=run.attempt,
        status=run.status,
        reason=run.reason,
        worker=run.worker,
        started_at=run.started_at,
        finished_at=run.finished_at,
        wait_ms=run.wait_ms,
        duration_ms=run.duration_ms,
        error=run.error,
    )


async def get_correlation(
    request: Request,
    id: Annotated[str, Path(min_length=1, max_length=MAX_KEY)],  # noqa: A002 - the path's word
    after: Annotated[int, Query(ge=0, le=MAX_JOB, description="Only jobs with a higher number.")] = 0,
) -> CorrelationOut:
    """Trace an action: its jobs and which came of which; a job's own UUID finds the job and what came of it."""
    found = await (await reader_of(request).store()).trace(id, after=after)
    if not found.spans and not after:
        raise Refusal(404, f"correlation {shown(id)} not found: no job has it; GET /api/v1/jobs has each job's correlation_id")
    jobs = [_out(span, found.at) for span in found.spans]
    last = None if found.is_complete else found.last_id
    is_all = found.is_complete and not after
    return CorrelationOut(correlation_id=id, at=found.at, jobs=jobs, total=len(jobs), is_total_exact=is_all, next=last)


ROUTES = (Route("GET", "/api/v1/correlations/{id}", Role.VIEWER, get_correlation, errors=(404,), is_costly=True),)
