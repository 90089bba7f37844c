"""Jobs: made, listed, read, edited, deleted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, Literal, TypeVar, cast

from fastapi import Path, Query, Request, Response
from pydantic_core import to_json

from windlass.app import Windlass
from windlass.client.job_ref import number_of
from windlass.core.access import Role
from windlass.core.filter import MAX_SEARCH, JobFilter, StateFilter
from windlass.core.interval import states_of
from windlass.core.job import INT32, MAX_KEY, MAX_NAME, JobState, NewJob, RunStatus, Stored
from windlass.core.page import MAX_OFFSET, JobQuery, Sort
from windlass.core.payload import decode_request
from windlass.core.pool import PULL_LANE
from windlass.core.record import record
from windlass.errors import InvalidInput, UnknownTask
from windlass.store.stored_jobs import StoredJobs
from windlass.web.fields import Instant, Limit, Listed, capped
from windlass.web.job_edits import EditIn, edit_of
from windlass.web.job_forms import CrawlIn, JobIn, crawl_job, crawl_source, native_job, read_form
from windlass.web.job_shape import JobDetailOut, answer_rules, job_fields, job_out
from windlass.web.request_context import RequestContext, context_of, operator_of, reader_of
from windlass.web.route import Route
from windlass.wire.jobs import JobOut

JobId = Annotated[str, Path(min_length=1, max_length=64, description="A job's UUID or its number.")]
SortBy = Literal["created_at", "updated_at", "run_at", "next_run_at", "priority", "completed_at", "state", "status"]
_SORTS = {"next_run_at": Sort.RUN_AT, "status": Sort.STATE}
_MOST_BYTES = 2**30
"""The server bounds bodies, and the codec payloads."""


@record(kw_only=True)
class JobMadeOut(JobOut):
    """The job a request led to."""

    duplicate: bool
    """Whether it was there before and holds the unique key or the name."""


class JobsOut(Listed):
    """A page of jobs."""

    jobs: list[JobOut]
    limit: int
    offset: int
    sort_by: str
    sort_order: str
    is_complete: bool
    """Otherwise only the newest jobs were looked at, or sorted; the rest was left out."""
    next_cursor: str | None
    """Send it as `cursor` for the next page."""


async def create_job(request: Request, body: JobIn | CrawlIn) -> JobMadeOut:
    """Enqueue a job: one of any task, or the interval scheduler's crawl; 200 when it is a duplicate."""
    return job_made(await enqueue(context_of(request), body), request)


def job_made(stored: Stored, request: Request) -> JobMadeOut:
    """Show what an enqueue led to."""
    return JobMadeOut(**job_fields(stored.job, answer_rules(request)), duplicate=stored.is_duplicate)


async def create_job_hot(request: Request) -> Response:
    """Answer as `create_job` is documented to, without FastAPI's own work in between."""
    body = read_form(decode_request(await request.body(), field="body", limit=_MOST_BYTES))
    context = context_of(request)
    stored = await enqueue(context, body)
    # As the model would write them, which a test compares; checking our own fields takes longer than writing them.
    fields = {**job_fields(stored.job, answer_rules(request)), "duplicate": stored.is_duplicate}
    headers = {"location": f"{context.base}/api/v1/jobs/{fields['id']}"}
    status = 200 if stored.is_duplicate else 201
    return Response(to_json(fields), status, headers, "application/json")


async def enqueue(context: RequestContext, body: JobIn | CrawlIn) -> Stored:
    """Enqueue what a form describes, in one commit with what others send meanwhile."""
    app, by = context.app, context.principal.name[:MAX_NAME]
    if isinstance(body, CrawlIn):
        source = crawl_source(body)
        job = crawl_job(body, source, app, by)
        await check_crawl(context, job, "url", body.url)
        await app.sources.upsert(source)
        return await app.enqueue_and_get(context.traced(job))
    return await app.enqueue_and_get(context.traced(await native_job(body, app, by)))


async def check_crawl(context: RequestContext, job: NewJob, field: str, value: object) -> None:
    """Refuse a crawl without known code, by the name of what was sent."""
    app = context.app
    if not (job.lane == PULL_LANE or app.accepts_unknown or await app.declares(job.task)):
        raise InvalidInput(field, value, f"is for the task 'crawl', which {UnknownTask(job.task).reason}")


Text = Annotated[str | None, Query(max_length=MAX_KEY)]
Shortened = Annotated[str | None, Query(max_length=MAX_NAME)]
WholePriority = Annotated[int | None, Query(ge=-INT32 - 1, le=INT32, description="As it is now.")]
Worker = Annotated[str | None, Query(max_length=MAX_KEY, description="The worker that runs them now.")]
ErrorText = Annotated[str | None, Query(max_length=MAX_SEARCH, description="Found in the last error.")]


async def list_jobs(  # noqa: PLR0913 - one for each filter
    request: Request,
    *,
    status: Annotated[str | None, Query(max_length=200, description="The interval scheduler's states, with commas.")] = None,
    state: Annotated[str | None, Query(max_length=200, description="The engine's states, with commas; not with status.")] = None,
    task: Shortened = None,
    lane: Shortened = None,
    source_id: Text = None,
    search: Annotated[str | None, Query(max_length=MAX_SEARCH)] = None,
    correlation_id: Text = None,
    since: Annotated[Instant | None, Query(description="Made at this time or later.")] = None,
    priority: WholePriority = None,
    worker: Worker = None,
    error: ErrorText = None,
    sort_by: SortBy = "created_at",
    sort_order: Literal["asc", "desc"] = "desc",
    limit: Limit = 50,
    offset: Annotated[int, Query(ge=0, le=MAX_OFFSET, description="For more, go on with the cursor.")] = 0,
    cursor: Annotated[str | None, Query(max_length=200, description="`next_cursor` of the page before.")] = None,
) -> JobsOut:
    """List jobs, newest first by default; `total` is exact unless it is marked."""
    if status and state:
        raise InvalidInput("state", state, "give status or state, not both")
    wanted = JobFilter(
        states=states(state) or statuses(status),
        tasks=(task,) if task else (),
        lanes=(lane,) if lane else (),
        subject=source_id or None,
        search=search or None,
        correlation_id=correlation_id or None,
        since=since,
        priority=priority,
        worker=worker or None,
        error=error or None,
    )
    query = JobQuery(
        filter=wanted,
        sort=_SORTS.get(sort_by) or Sort(sort_by),
        is_descending=sort_order == "desc",
        limit=capped(limit),
        offset=offset,
        cursor=cursor or None,
    )
    page = await reader_of(request).list(query)
    rules = answer_rules(request)
    rest = {
        "total": page.total,
        "is_total_exact": page.is_total_exact,
        "limit": query.limit,
        "offset": offset,
        "sort_by": sort_by,
        "sort_order": sort_order,
        "is_complete": page.is_complete,
        "next_cursor": page.next_cursor,
    }
    # FastAPI documents the model, and sends an answer that is written already as it is.
    return cast("JobsOut", await listing("jobs", page.jobs, lambda job: job_fields(job, rules), rest))


def statuses(words: str | None) -> tuple[StateFilter, ...]:
    """Read a comma list of the interval scheduler's states."""
    found: list[StateFilter] = []
    for word in (words or "").split(","):
        if not word.strip():
            continue
        try:
            found += states_of(JobState(word.strip()))
        except ValueError:
            raise InvalidInput("status", word, f"use some of {', '.join(JobState)}") from None
    return tuple(dict.fromkeys(found))


def states(names: str | None) -> tuple[str, ...]:
    """Read a comma list of the engine's states."""
    chosen = tuple(dict.fromkeys(name.strip() for name in (names or "").split(",") if name.strip()))
    for name in chosen:
        if name not in frozenset(JobState):
            raise InvalidInput("state", name, f"use some of {', '.join(JobState)}")
    return chosen


async def get_job(request: Request, id: JobId) -> JobDetailOut:  # noqa: A002 - the path's name
    """Read one job, with the result of its newest run."""
    app, rules = context_of(request).app, answer_rules(request)
    job = await app.get(id)
    return JobDetailOut(**job_fields(job, rules), result=rules.hide(await newest_result(app, job.id) if job.executions else None))


async def newest_result(app: Windlass, number: int) -> Any:
    """Read the result of the newest run that has ended."""
    runs = await app.executions(number, limit=2)
    return next((run.result for run in runs if run.status is not RunStatus.RUNNING), None)


async def edit_job(request: Request, id: JobId, body: EditIn) -> JobOut:  # noqa: A002 - the path's name
    """Change some fields of a job; only a new cadence moves its next run. What moves a job has routes of its own."""
    operator = operator_of(request)
    number = number_of(id)
    if body.has_source:
        body.check_task((await operator.get(number)).task)
    if body.payload is not None:
        await operator.check_payload((await operator.get(number)).task, body.payload)
    moved = await StoredJobs(operator).edit(number, edit_of(body))
    return job_out(moved.one(), answer_rules(request))


async def delete_job(request: Request, id: JobId) -> JobOut:  # noqa: A002 - the path's name
    """Remove a job that is not leased, with its executions; the answer is the job as it was."""
    return job_out(await operator_of(request).delete(id), answer_rules(request))


_MADE: dict[int, Any] = {200: JobMadeOut}
ROUTES = (
    Route("POST", "/api/v1/jobs", Role.PRODUCER, create_job, 201, errors=(409,), others=_MADE, hot=create_job_hot),
    Route("GET", "/api/v1/jobs", Role.VIEWER, list_jobs, is_costly=True),
    Route("GET", "/api/v1/jobs/{id}", Role.VIEWER, get_job, errors=(404,)),
    Route("PUT", "/api/v1/jobs/{id}", Role.OPERATOR, edit_job, errors=(404, 409)),
    Route("DELETE", "/api/v1/jobs/{id}", Role.OPERATOR, delete_job, errors=(404, 409)),
)


T = TypeVar("T")
_AT_ONCE = 5


async def listing(name: str, rows: Iterable[T], show: Callable[[T], Mapping[str, Any]], rest: Mapping[str, Any]) -> Response:
    """Answer with a list under its name and the `rest` beside it, as their models would write them."""
    written: list[bytes] = []
    for place, row in enumerate(rows, start=1):
        written.append(to_json(show(row)))
        if place % _AT_ONCE == 0:
            await asyncio.sleep(0)
    head = to_json(rest)[:-1]
    body = b'%s,"%s":[%s]}' % (head, name.encode(), b",".join(written))
    return Response(body, media_type="application/json")
