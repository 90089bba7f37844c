"""Executions: how the runs of a job went."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Query, Request

from windlass.client.job_ref import number_of
from windlass.core.access import Role
from windlass.core.ids import execution_uuid, job_uuid, parse_execution_id
from windlass.core.job import Execution
from windlass.core.page import MAX_OFFSET
from windlass.errors import shown
from windlass.store.stored_jobs import StoredJobs
from windlass.web.errors import Refusal
from windlass.web.fields import Limit, Listed, capped
from windlass.web.job_shape import AnswerRules, answer_rules
from windlass.web.jobs import JobId
from windlass.web.request_context import context_of, reader_of
from windlass.web.route import Route
from windlass.wire.jobs import ExecutionOut


class ExecutionsOut(Listed):
    """A page of a job's runs, newest first."""

    executions: list[ExecutionOut]
    limit: int
    offset: int


def execution_out(run: Execution, rules: AnswerRules) -> ExecutionOut:
    """Show a run."""
    return ExecutionOut(
        id=execution_uuid(run.job_id, run.number),
        job_id=job_uuid(run.job_id),
        execution_number=run.number,
        status=run.status,
        started_at=run.started_at,
        completed_at=run.finished_at,
        duration_ms=run.duration_ms,
        items_crawled=run.items_crawled or 0,
        items_indexed=run.items_indexed or 0,
        error_message=run.error,
        stack_trace=run.stack_trace,
        cpu_time_ms=run.cpu_time_ms,
        memory_peak_mb=run.memory_peak_mb,
        retry_attempt=max(run.attempt - 1, 0),
        metadata=rules.hide(run.metadata),
        attempt=run.attempt,
        reason=run.reason,
        error_type=run.error_type,
        worker=run.worker,
        slot_at=run.slot_at,
        wait_ms=run.wait_ms,
        log_excerpt=run.log_excerpt,
        result=rules.hide(run.result),
        stopped_at=run.stopped_at,
        version=run.version,
    )


async def list_executions(
    request: Request,
    id: JobId,  # noqa: A002 - the path's name
    limit: Limit = 50,
    offset: Annotated[int, Query(ge=0, le=MAX_OFFSET)] = 0,
) -> ExecutionsOut:
    """List a job's runs, the one that goes on first, then newest first."""
    jobs = StoredJobs(reader_of(request))
    number, most = number_of(id), capped(limit)
    runs = await jobs.list_executions(number, limit=most, offset=offset)
    total = await jobs.count_executions(number)
    if not total:
        # A job without runs has an empty list; no job has none.
        await jobs.get(number)
    rules = answer_rules(request)
    return ExecutionsOut(executions=[execution_out(run, rules) for run in runs], total=total, limit=most, offset=offset)


async def get_execution(request: Request, id: Annotated[str, Path(min_length=1, max_length=64)]) -> ExecutionOut:  # noqa: A002 - the path's name
    """Read one run."""
    found = parse_execution_id(id)
    if found is None:
        raise Refusal(404, f"execution {shown(id)} not found; GET /api/v1/jobs/{{id}}/executions lists those of a job")
    return execution_out(await StoredJobs(context_of(request).app).get_execution(*found), answer_rules(request))


ROUTES = (
    Route("GET", "/api/v1/jobs/{id}/executions", Role.VIEWER, list_executions, errors=(404,), is_costly=True),
    Route("GET", "/api/v1/executions/{id}", Role.VIEWER, get_execution, errors=(404,)),
)
