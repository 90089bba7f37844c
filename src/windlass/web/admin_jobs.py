"""The priority crawl queue's admin API: the jobs of the crawl queue."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Literal

from fastapi import Path, Query, Request, Response
from pydantic import BaseModel, Field

from windlass.client.job_ref import number_of
from windlass.client.operations import Operator
from windlass.core.access import Role
from windlass.core.filter import JobFilter
from windlass.core.job import INT32, MAX_ATTEMPTS, Job
from windlass.core.page import MAX_OFFSET, JobQuery
from windlass.core.retry import Profile
from windlass.core.transitions import Moved
from windlass.errors import InvalidTransition, JobNotFound, SlotTaken
from windlass.store.stored_jobs import StoredJobs
from windlass.web import admin_fields as fields
from windlass.web.admin_fields import CRAWL, Shown, Status
from windlass.web.fields import MAX_LIMIT, Body, Limit, capped
from windlass.web.jobs import check_crawl
from windlass.web.request_context import context_of, operator_of, reader_of
from windlass.web.route import Route

HIGHEST = 100
_MOST_LOOKS = 50
_INT64 = 2**63 - 1

JobNumber = Annotated[str, Path(min_length=1, max_length=64, description="The job's number.")]
Priority = Annotated[int, Field(ge=0, le=HIGHEST)]
Subreddit = Annotated[int, Field(ge=1, le=_INT64)]
Offset = Annotated[int, Query(ge=0, le=MAX_OFFSET)]
JobIds = Annotated[list[Annotated[int, Field(ge=1, le=_INT64)]], Field(min_length=1, max_length=MAX_LIMIT)]


class CrawlStats(BaseModel):
    """Crawl jobs by status; those that are paused or cancelled are in none of them."""

    queued: int
    running: int
    failed: int
    completed: int
    total: int
    """Of these four."""


class CrawlJob(BaseModel):
    """A row of the crawl queue's `crawl_jobs`."""

    id: int
    subreddit_id: int | str | None
    status: Shown
    priority: int
    retries: int
    """The same as `retry_count`."""
    retry_count: int
    """Runs that failed since the last fresh start."""
    max_retries: int
    visible_at: datetime
    next_retry_at: datetime | None
    last_attempt: datetime | None
    duration_ms: int | None
    """Of the last run; null while one goes on."""
    enqueued_by: str
    created_at: datetime
    updated_at: datetime


class NewCrawlJob(Body):
    """A subreddit to crawl."""

    subreddit_id: Subreddit
    priority: Priority = 0
    max_retries: Annotated[int, Field(ge=0, lt=MAX_ATTEMPTS)] | None = None
    """Absent: 3."""


class NewStatus(Body):
    """Where to put a job."""

    status: Annotated[Status, Field(strict=False)]


class NewPriority(Body):
    """A priority, which is also the one that the job returns to."""

    priority: Priority


class Boost(Body):
    """How much to add; the priority stays at most 100."""

    boost: Annotated[int, Field(ge=1, le=INT32)]


class ManyStatus(NewStatus):
    """Where to put some jobs."""

    job_ids: JobIds


class ManyJobs(Body):
    """Some jobs."""

    job_ids: JobIds


class Done(BaseModel):
    """What was asked for is done."""

    ok: Literal[True] = True
    job_id: int


class DonePriority(Done):
    """The priority that the job has now."""

    new_priority: int


class DoneMany(BaseModel):
    """How many of the jobs that were sent have changed."""

    ok: Literal[True] = True
    success_count: int
    total_count: int


def crawl_job(job: Job, profiles: Mapping[str, Profile]) -> CrawlJob:
    """Show a job as the priority crawl queue does."""
    failed = fields.failed_runs(job)
    return CrawlJob(
        id=job.id,
        subreddit_id=fields.subject_shown(job.subject),
        status=fields.shown_as(job.state, job.wait_reason),
        priority=job.priority,
        retries=failed,
        retry_count=failed,
        max_retries=fields.most_retries(job, profiles),
        visible_at=job.run_at,
        next_retry_at=job.run_at if fields.waits_again(job) else None,
        last_attempt=job.started_at,
        duration_ms=fields.duration_ms(job),
        enqueued_by=job.created_by or "system",
        created_at=job.created_at,
        updated_at=job.updated_at,
    )


async def admin_stats(request: Request) -> CrawlStats:
    """Count the crawl jobs by status, without reading them."""
    found = fields.counts_by_status(await StoredJobs(context_of(request).app).count_task(CRAWL))
    queued, running, failed, completed = (found[one] for one in (Shown.QUEUED, Shown.CRAWLING, Shown.FAILED, Shown.SUCCESS))
    total = queued + running + failed + completed
    return CrawlStats(queued=queued, running=running, failed=failed, completed=completed, total=total)


async def admin_list_jobs(
    request: Request, status: Shown | None = None, limit: Limit = 100, offset: Offset = 0
) -> list[CrawlJob]:
    """List the crawl jobs, newest first."""
    profiles = context_of(request).app.settings.profiles
    wanted = JobFilter(states=() if status is None else fields.states_shown_as(status), tasks=(CRAWL,), is_template=False)
    query = JobQuery(filter=wanted, limit=capped(limit), offset=offset)
    return [crawl_job(job, profiles) for job in await _listed(reader_of(request), query)]


async def _listed(app: Operator, query: JobQuery) -> Sequence[Job]:
    """Read a page; where only the newest jobs were looked at and too few of them fit, look on."""
    page = await app.list(query)
    if page.is_complete or len(page.jobs) == query.limit:
        return page.jobs
    found: list[Job] = []
    end = query.offset + query.limit
    cursor: str | None = None
    for _ in range(_MOST_LOOKS):
        page = await app.list(JobQuery(filter=query.filter, limit=MAX_LIMIT, cursor=cursor))
        found += page.jobs
        cursor = page.next_cursor
        if len(found) >= end or cursor is None:
            break
    return found[query.offset : end]


async def admin_create_job(request: Request, response: Response, body: NewCrawlJob) -> CrawlJob:
    """Enqueue a crawl of a subreddit; 200 with the job there is when one has not ended yet, unchanged."""
    context = context_of(request)
    app = context.app
    described, _ = app.describe(
        CRAWL,
        {},
        {
            "subject": str(body.subreddit_id),
            "unique_key": str(body.subreddit_id),
            "unique_scope": "active",
            "on_conflict": "ignore",
            "priority": body.priority,
            "max_attempts": None if body.max_retries is None else body.max_retries + 1,
            "retry": {"profile": CRAWL},
            "created_by": "api",
        },
    )
    await check_crawl(context, described, "subreddit_id", body.subreddit_id)
    enqueued = await app.enqueue_job(context.traced(described))
    if enqueued.is_duplicate:
        response.status_code = 200
    return crawl_job(await app.get(enqueued), app.settings.profiles)


async def admin_set_status(request: Request, id: JobNumber, body: NewStatus) -> Done:  # noqa: A002 - the path's name
    """Put a job into a state by hand; its holder loses it, and `crawling` ends after RESET_CRAWLING_AFTER_MIN."""
    context = context_of(request)
    number = await _crawl_number(request, id)
    lease = context.app.settings.reset_crawling_after
    await context.operator.override_status(number, fields.STATE_OF[body.status], by=context.principal.name, lease=lease)
    return Done(job_id=number)


async def admin_set_priority(request: Request, id: JobNumber, body: NewPriority) -> DonePriority:  # noqa: A002
    """Set a job's priority."""
    left = await operator_of(request).set_priority(await _crawl_number(request, id), body.priority)
    return DonePriority(job_id=left.id, new_priority=left.priority)


async def admin_boost_job(request: Request, id: JobNumber, body: Boost) -> DonePriority:  # noqa: A002
    """Raise a job's priority, up to 100."""
    left = await operator_of(request).boost(await _crawl_number(request, id), min(body.boost, HIGHEST))
    return DonePriority(job_id=left.id, new_priority=left.priority)


async def admin_retry_job(request: Request, id: JobNumber) -> Done:  # noqa: A002
    """Give a failed job a fresh start."""
    return Done(job_id=(await operator_of(request).retry(await _crawl_number(request, id))).id)


async def admin_set_many(request: Request, body: ManyStatus) -> DoneMany:
    """Put some jobs into a state by hand, in one transaction."""
    context = context_of(request)
    move = StoredJobs(context.operator).override_status(
        await _crawl_numbers(request, body.job_ids),
        fields.STATE_OF[body.status],
        by=context.principal.name,
        lease_length=context.app.settings.reset_crawling_after,
    )
    return DoneMany(success_count=await _changed_by(move), total_count=len(body.job_ids))


async def admin_retry_many(request: Request, body: ManyJobs) -> DoneMany:
    """Give those of some jobs that have failed a fresh start, in one transaction."""
    move = StoredJobs(operator_of(request)).retry(await _crawl_numbers(request, body.job_ids))
    return DoneMany(success_count=await _changed_by(move), total_count=len(body.job_ids))


async def _changed_by(move: Awaitable[Moved]) -> int:
    try:
        return len((await move).changed)
    except SlotTaken:
        # Raised for a single job only; here it is one of those that did not change.
        return 0


async def _crawl_number(request: Request, ref: str) -> int:
    """Find a crawl job's number; what a job is about never changes, so the answer stays true."""
    number = number_of(ref)
    if not await _crawl_numbers(request, [number]):
        raise JobNotFound(number)
    return number


async def _crawl_numbers(request: Request, ids: list[int]) -> list[int]:
    found = await StoredJobs(context_of(request).app).get_many(ids)
    return [job.id for job in found if job.task == CRAWL and not job.spawn]


_JOB = "/api/admin/jobs/{id}"
_CONFLICT: Mapping[type[Exception], int] = {InvalidTransition: 409}

ROUTES = (
    Route("GET", "/api/admin/jobs/stats", Role.VIEWER, admin_stats),
    Route("GET", "/api/admin/jobs", Role.VIEWER, admin_list_jobs, is_costly=True),
    Route("POST", "/api/admin/jobs", Role.PRODUCER, admin_create_job, 201, errors=(409,), others={200: CrawlJob}),
    Route("PUT", "/api/admin/jobs/bulk/status", Role.ADMIN, admin_set_many),
    Route("POST", "/api/admin/jobs/bulk/retry", Role.OPERATOR, admin_retry_many),
    Route("PUT", f"{_JOB}/status", Role.ADMIN, admin_set_status, errors=(404, 409), statuses=_CONFLICT),
    Route("PUT", f"{_JOB}/priority", Role.OPERATOR, admin_set_priority, errors=(404, 409), statuses=_CONFLICT),
    Route("POST", f"{_JOB}/boost", Role.OPERATOR, admin_boost_job, errors=(404, 409), statuses=_CONFLICT),
    Route("POST", f"{_JOB}/retry", Role.OPERATOR, admin_retry_job, errors=(404, 409), statuses=_CONFLICT),
)
