"""The priority crawl queue's admin API: scheduled jobs, which are templates of crawls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Annotated, Literal

from fastapi import Request
from pydantic import BaseModel, Field, StringConstraints

from windlass.client.job_ref import number_of
from windlass.core.access import Role
from windlass.core.cadence import ByHandler, Cadence, Recurrence, parse_cadence
from windlass.core.filter import JobFilter
from windlass.core.job import MAX_SCHEDULE_NAME, MAX_TEXT, Job
from windlass.core.page import JobQuery
from windlass.core.schedule_edit import ScheduleEdit
from windlass.errors import InvalidInput, InvalidTransition, JobNotFound
from windlass.web import admin_fields as fields
from windlass.web.admin_fields import CRAWL
from windlass.web.admin_jobs import Done, JobNumber, Offset, Priority, Subreddit
from windlass.web.fields import LINE, Body, Limit, capped
from windlass.web.jobs import check_crawl
from windlass.web.request_context import context_of, operator_of, reader_of
from windlass.web.route import Route

_LONGEST_CRON = 200
ScheduleName = Annotated[str, StringConstraints(min_length=1, max_length=MAX_SCHEDULE_NAME, pattern=LINE)]
Description = Annotated[str, StringConstraints(max_length=MAX_TEXT)]
Cron = Annotated[
    str,
    Field(
        min_length=1,
        max_length=_LONGEST_CRON,
        description="A name such as @daily, @every with a duration such as 1h30m, or five cron fields, in UTC.",
    ),
]


class ScheduledJob(BaseModel):
    """A row of the crawl queue's `scheduled_jobs`."""

    id: int
    name: str | None
    description: str | None
    subreddit_id: int | str | None
    cron_expression: str
    enabled: bool
    last_run_at: datetime | None
    next_run_at: datetime
    priority: int
    created_at: datetime
    updated_at: datetime
    created_by: str | None


class NewScheduledJob(Body):
    """When to crawl a subreddit again and again."""

    name: ScheduleName
    description: Description | None = None
    subreddit_id: Subreddit
    cron_expression: Cron
    enabled: bool = True
    priority: Priority = 0
    """Of the jobs it enqueues."""


class ChangedScheduledJob(Body):
    """What to change; what is left out, or null, stays."""

    name: ScheduleName | None = None
    description: Description | None = None
    """Null takes it away."""
    subreddit_id: Subreddit | None = None
    cron_expression: Cron | None = None
    enabled: bool | None = None
    priority: Priority | None = None


class Toggle(Body):
    """Whether the schedule is to go on."""

    enabled: bool


class Toggled(BaseModel):
    """Whether the schedule goes on now."""

    ok: Literal[True] = True
    enabled: bool


class Removed(BaseModel):
    """The schedule is gone; what it enqueued stays."""

    ok: Literal[True] = True


def scheduled_job(job: Job) -> ScheduledJob:
    """Show a template as the priority crawl queue does."""
    return ScheduledJob(
        id=job.id,
        name=job.name,
        description=job.description,
        subreddit_id=fields.subject_shown(job.subject),
        cron_expression=_expression(job),
        enabled=fields.goes_on(job),
        last_run_at=job.last_run_at,
        next_run_at=job.run_at,
        priority=job.base_priority,
        created_at=job.created_at,
        updated_at=job.updated_at,
        created_by=job.created_by,
    )


def _expression(job: Job) -> str:
    try:
        return str(Recurrence.decode(job.cadence or "").cadence)
    except InvalidInput:
        # A rule that cannot be read must not hide the others in a list.
        return job.cadence or ""


async def admin_list_schedules(request: Request, limit: Limit = 100, offset: Offset = 0) -> list[ScheduledJob]:
    """List the scheduled jobs, oldest first."""
    wanted = JobFilter(tasks=(CRAWL,), is_template=True)
    query = JobQuery(filter=wanted, is_descending=False, limit=capped(limit), offset=offset)
    return [scheduled_job(job) for job in (await reader_of(request).list(query)).jobs]


async def admin_create_schedule(request: Request, body: NewScheduledJob) -> ScheduledJob:
    """Enqueue a crawl again and again; while the one before has not ended, none is added."""
    context = context_of(request)
    subject = str(body.subreddit_id)
    options = {"subject": subject, "priority": body.priority, "retry": {"profile": CRAWL}, "created_by": context.principal.name}
    described, _ = context.app.describe(CRAWL, {}, {**options, "description": body.description or None})
    await check_crawl(context, described, "subreddit_id", body.subreddit_id)
    template = replace(
        described,
        name=body.name,
        recurrence=Recurrence(cadence=_cadence(body.cron_expression)),
        spawn=True,
        child_key=subject,
        unique_key=None,
    )
    return scheduled_job(await context.operator.schedules.create(template, is_enabled=body.enabled))


async def admin_get_schedule(request: Request, id: JobNumber) -> ScheduledJob:  # noqa: A002 - the path's name
    """Read one scheduled job."""
    return scheduled_job(await _template(request, id))


async def admin_edit_schedule(request: Request, id: JobNumber, body: ChangedScheduledJob) -> Done:  # noqa: A002
    """Change a scheduled job; its next run moves only when its cadence changes."""
    template = await _template(request, id)
    left = await operator_of(request).schedules.change(template.id, _edit(body))
    return Done(job_id=left.id)


async def admin_delete_schedule(request: Request, id: JobNumber) -> Removed:  # noqa: A002
    """Remove a scheduled job."""
    await operator_of(request).delete(await _template(request, id))
    return Removed()


async def admin_toggle_schedule(request: Request, id: JobNumber, body: Toggle) -> Toggled:  # noqa: A002
    """Let a scheduled job go on or stop it; its next time stays, so an overdue one is due at once."""
    operator, template = operator_of(request), await _template(request, id)
    left = await (operator.enable(template) if body.enabled else operator.disable(template))
    return Toggled(enabled=fields.goes_on(left))


async def _template(request: Request, ref: str) -> Job:
    number = number_of(ref)
    job = await context_of(request).app.get(number)
    if job.task != CRAWL or not job.spawn:
        raise JobNotFound(number)
    return job


def _edit(body: ChangedScheduledJob) -> ScheduleEdit:
    subject = None if body.subreddit_id is None else str(body.subreddit_id)
    return ScheduleEdit(
        name=body.name,
        description=body.description or "" if "description" in body.model_fields_set else None,
        subject=subject,
        child_key=subject,
        cadence=None if body.cron_expression is None else _cadence(body.cron_expression),
        priority=body.priority,
        is_enabled=body.enabled,
    )


def _cadence(text: str) -> Cadence:
    try:
        cadence = parse_cadence(text)
    except InvalidInput as error:
        raise InvalidInput("cron_expression", text, error.reason) from None
    if isinstance(cadence, ByHandler):
        raise InvalidInput("cron_expression", text, "a scheduled job has no handler to ask; write a cadence")
    return cadence


_SCHEDULES = "/api/admin/scheduled-jobs"
_ONE = f"{_SCHEDULES}/{{id}}"
_CONFLICT: Mapping[type[Exception], int] = {InvalidTransition: 409}

ROUTES = (
    Route("GET", _SCHEDULES, Role.VIEWER, admin_list_schedules, is_costly=True),
    Route("POST", _SCHEDULES, Role.OPERATOR, admin_create_schedule, 201, errors=(409,)),
    Route("GET", _ONE, Role.VIEWER, admin_get_schedule, errors=(404,)),
    Route("PUT", _ONE, Role.OPERATOR, admin_edit_schedule, errors=(404, 409), statuses=_CONFLICT),
    Route("DELETE", _ONE, Role.OPERATOR, admin_delete_schedule, errors=(404, 409)),
    Route("POST", f"{_ONE}/toggle", Role.OPERATOR, admin_toggle_schedule, errors=(404, 409), statuses=_CONFLICT),
)
