"""Correlations: every job that came of one action, and which came of which."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated
from uuid import UUID

from fastapi import Path, Query, Request
from pydantic import BaseModel

from windlass.core.access import Role
from windlass.core.ids import MAX_JOB, job_uuid
from windlass.core.job import MAX_KEY, JobState, WaitReason
from windlass.core.related import Branch, trace
from windlass.errors import shown
from windlass.web.errors import Refusal
from windlass.web.fields import Listed
from windlass.web.request_context import reader_of
from windlass.web.route import Route


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


class CorrelationOut(Listed):
    """The jobs of a correlation as a tree: each before its children, the oldest first."""

    correlation_id: str
    jobs: list[TracedOut]
    next: int | None
    """Send it as `after` for the next page; a parent on an earlier page does not count in `depth`."""


def _out(branch: Branch) -> TracedOut:
    job = branch.job
    return TracedOut(
        id=job_uuid(job.id),
        number=job.id,
        task=job.task,
        lane=job.lane,
        state=job.state,
        wait_reason=job.wait_reason,
        parent_id=None if job.parent_id is None else job_uuid(job.parent_id),
        depth=branch.depth,
        attempts=job.attempt,
        created_at=job.created_at,
        run_at=job.run_at,
        started_at=job.started_at,
        finished_at=job.finished_at,
        last_error=job.last_error,
    )


async def get_correlation(
    request: Request,
    id: Annotated[str, Path(min_length=1, max_length=MAX_KEY)],  # noqa: A002 - the path's word
    after: Annotated[int, Query(ge=0, le=MAX_JOB, description="Only jobs with a higher number.")] = 0,
) -> CorrelationOut:
    """Trace an action: its jobs and which came of which; a job's own UUID finds the job and what came of it."""
    found = await (await reader_of(request).store()).list_by_correlation(id, after=after)
    if not found.jobs and not after:
        raise Refusal(404, f"correlation {shown(id)} not found: no job has it")
    jobs = [_out(branch) for branch in trace(found.jobs)]
    last = None if found.is_complete else found.jobs[-1].id
    is_all = found.is_complete and not after
    return CorrelationOut(correlation_id=id, jobs=jobs, total=len(jobs), is_total_exact=is_all, next=last)


ROUTES = (Route("GET", "/api/v1/correlations/{id}", Role.VIEWER, get_correlation, errors=(404,), is_costly=True),)
