"""The list of jobs: filtered by its address, chosen and acted on by the page's script."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal, NamedTuple
from urllib.parse import urlencode

from fastapi import Query, Request, Response
from pydantic import BeforeValidator

from windlass.core.access import Role
from windlass.core.filter import MAX_SEARCH, JobFilter
from windlass.core.job import CLOSED, RETRIED, Job, JobState, WaitReason
from windlass.core.page import JobQuery, Sort
from windlass.web.dashboard.correlation import correlation_path
from windlass.web.dashboard.frame import draw, now
from windlass.web.dashboard.jobs_address import COLUMNS, SIZES, STATES, JobsAddress, bulk_filter
from windlass.web.dashboard.times import short
from windlass.web.fields import Instant
from windlass.web.jobs import ErrorText, Shortened, Text, WholePriority, Worker, states
from windlass.web.request_context import context_of, reader_of
from windlass.web.route import Route

_MAX_ERROR = 200
_MOST_NAMES = 200
"""How many names of tasks and lanes the page suggests."""


class ListedJob(NamedTuple):
    """A line of the list."""

    job: Job
    state: str
    word: str
    """The state, or that it will be tried again."""
    detail: str
    duration: str
    since: datetime | None
    """When a run that goes on began."""
    error: str


def job_row(job: Job, at: datetime) -> ListedJob:
    """Lay out a job."""
    is_running = job.state is JobState.RUNNING
    is_retried = job.state not in CLOSED and not is_running and job.wait_reason in RETRIED
    is_well = is_running or job.state in {JobState.COMPLETED, JobState.CANCELLED}
    return ListedJob(
        job=job,
        state="retry" if is_retried else job.state.value,
        word="retrying" if is_retried else job.state.value,
        detail=_detail(job),
        duration=_duration(job, at),
        since=job.started_at if is_running else None,
        error="" if is_well else (job.last_error or "")[:_MAX_ERROR],
    )


def _duration(job: Job, at: datetime) -> str:
    if job.started_at is None:
        return ""
    if job.state is JobState.RUNNING:
        return short(at - job.started_at)
    return short(job.finished_at - job.started_at) if job.finished_at and job.finished_at >= job.started_at else ""


def _detail(job: Job) -> str:
    """Return the one detail that a state alone does not show."""
    if job.state is JobState.RUNNING:
        return job.progress_message or (f"try {job.attempt}" if job.attempt > 1 else "")
    if job.state in CLOSED:
        return f"try {job.attempt}" if job.attempt > 1 else ""
    if job.wait_reason in RETRIED:
        return f"try {job.attempt + 1}" + (f" of {job.max_attempts}" if job.max_attempts else "")
    return "recurring" if job.cadence else job.wait_reason.value if job.wait_reason not in {None, WaitReason.NEW} else ""


def _nothing(text: object) -> object:
    """Take an empty field of a form for one that was left out."""
    return text or None


async def show_jobs(  # noqa: PLR0913 - one for each filter
    request: Request,
    *,
    state: Annotated[str | None, Query(max_length=200)] = None,
    task: Shortened = None,
    lane: Shortened = None,
    subject: Text = None,
    correlation: Text = None,
    search: Annotated[str | None, Query(max_length=MAX_SEARCH)] = None,
    since: Annotated[Instant | None, BeforeValidator(_nothing), Query()] = None,
    priority: Annotated[WholePriority, BeforeValidator(_nothing)] = None,
    worker: Worker = None,
    error: ErrorText = None,
    sort: Annotated[Sort, Query()] = Sort.CREATED_AT,
    order: Literal["asc", "desc"] = "desc",
    size: Annotated[int, Query(ge=1, le=SIZES[-1])] = 50,
    columns: Annotated[str | None, Query(max_length=200)] = None,
    cursor: Annotated[str | None, Query(max_length=200)] = None,
) -> Response:
    """Show a page of jobs."""
    wanted = JobFilter(
        states=states(state),
        tasks=(task,) if task else (),
        lanes=(lane,) if lane else (),
        subject=subject or None,
        search=search or None,
        correlation_id=correlation or None,
        since=since,
        priority=priority,
        worker=worker or None,
        error=error or None,
    )
    address = JobsAddress(
        state=state,
        task=task,
        lane=lane,
        priority=priority,
        subject=subject,
        correlation=correlation,
        worker=worker,
        since=since.isoformat() if since else None,
        error=error,
        search=search,
        sort=sort.value,
        order=order,
        size=size,
        columns=columns,
    )
    query = JobQuery(filter=wanted, sort=sort, is_descending=order == "desc", limit=size, cursor=cursor or None)
    at = await now(request)
    found = await reader_of(request).list(query)
    counts = await context_of(request).app.counts()
    among = [one for one in counts if (not task or one.task == task) and (not lane or one.lane == lane)]
    return draw(
        request,
        "jobs.html",
        at,
        here="/jobs",
        title="Jobs",
        rows=[job_row(job, at) for job in found.jobs],
        found=found,
        address=address,
        is_filtered=bool(wanted.tasks or wanted.lanes or wanted.states or not wanted.is_counted),
        is_first=not cursor,
        next=f"{address.link()}&{urlencode({'cursor': found.next_cursor})}" if found.next_cursor else None,
        chips=[(one, sum(count.jobs for count in among if count.state is one)) for one in STATES],
        chosen=frozenset(states(state)),
        known={
            "task": sorted({one.task for one in counts})[:_MOST_NAMES],
            "lane": sorted({one.lane for one in counts})[:_MOST_NAMES],
            "subject": sorted({job.subject for job in found.jobs if job.subject}),
            "correlation": sorted({job.correlation_id for job in found.jobs if job.correlation_id}),
        },
        columns=COLUMNS,
        picked=[(name, label) for name, label in COLUMNS.items() if name in address.shown and name != "lane"],
        has_lane="lane" in address.shown,
        correlation_path=correlation_path,
        sizes=SIZES,
        filter=bulk_filter(wanted),
    )


ROUTES = (Route("GET", "/jobs", Role.VIEWER, show_jobs, is_page=True, is_costly=True),)
