"""Many jobs in one request: enqueued all or none, or moved by numbers or by filter."""

from __future__ import annotations

import asyncio
from enum import StrEnum
from typing import Annotated, Any
from uuid import UUID

from fastapi import Request
from pydantic import BaseModel, Field, StringConstraints

from windlass.core.access import Role
from windlass.core.filter import MAX_SEARCH, JobFilter
from windlass.core.ids import MAX_JOB, job_uuid, parse_job_id
from windlass.core.interval import states_of
from windlass.core.job import INT32, MAX_NAME, MAX_TEXT, JobState, NewJob
from windlass.core.job_verbs import HIGHEST_BOOST, JOB_VERBS
from windlass.errors import InvalidInput
from windlass.web.fields import Body, Instant, Name
from windlass.web.job_forms import JobIn, Key, Priority, native_job
from windlass.web.request_context import context_of, operator_of
from windlass.web.route import Route

MOST_JOBS = 10_000
_MOST_NAMES = 100
_AT_ONCE = 200


Action = StrEnum("Action", {name.upper(): name for name in JOB_VERBS})  # type: ignore[misc]  # made of the table
"""What may be done to many jobs."""


class JobsIn(Body):
    """Jobs in our own form."""

    jobs: Annotated[list[JobIn], Field(min_length=1, max_length=MOST_JOBS)]


class EnqueuedOut(BaseModel):
    """The job that one entry led to."""

    id: UUID
    number: int
    duplicate: bool


class JobsMadeOut(BaseModel):
    """What a bulk led to: one entry for each that was sent, in order."""

    jobs: list[EnqueuedOut]
    total: int
    enqueued: int
    duplicates: int


class FilterIn(Body):
    """Which jobs are meant: those that have everything that is given."""

    status: Annotated[list[Annotated[JobState, Field(strict=False)]], Field(min_length=1, max_length=100)] | None = None
    """The interval scheduler's states."""
    state: Annotated[list[Annotated[JobState, Field(strict=False)]], Field(min_length=1, max_length=100)] | None = None
    """The engine's states."""
    task: Annotated[list[Name], Field(min_length=1, max_length=_MOST_NAMES)] | None = None
    lane: Annotated[list[Name], Field(min_length=1, max_length=_MOST_NAMES)] | None = None
    source_id: Key | None = None
    search: Annotated[str, StringConstraints(min_length=1, max_length=MAX_SEARCH)] | None = None
    correlation_id: Key | None = None
    since: Instant | None = None
    priority: Annotated[int, Field(ge=-INT32 - 1, le=INT32)] | None = None
    worker: Key | None = None
    """Held by this worker now."""
    error: Annotated[str, StringConstraints(min_length=1, max_length=MAX_SEARCH)] | None = None
    """Found in the last error."""


class BulkIn(Body):
    """What to do, and to which jobs: `ids`, `filter`, or those of the ids that match the filter."""

    action: Annotated[Action, Field(strict=False)]
    ids: Annotated[list[int | str], Field(min_length=1, max_length=MOST_JOBS)] | None = None
    """Numbers or UUIDs."""
    filter: FilterIn | None = None
    """An empty one means every job."""
    dry_run: bool = False
    limit: Annotated[int, Field(ge=1, le=MOST_JOBS)] | None = None
    """A part of the bulk: at most so many jobs. The answer has `next`, for the part after it."""
    after: Annotated[int, Field(ge=0, le=MAX_JOB)] | None = None
    """With limit: `next` of the part before."""
    until: Annotated[int, Field(ge=0, le=MAX_JOB)] | None = None
    """With limit: `until` of the first part, so that jobs made meanwhile are left alone."""
    amount: Annotated[int, Field(ge=1, le=HIGHEST_BOOST)] | None = None
    """Of boost; 10 if left out."""
    priority: Priority | None = None
    """Of set_priority."""
    reason: Annotated[str, StringConstraints(min_length=1, max_length=MAX_TEXT)] | None = None
    """Of cancel, fail and bury."""
    will_retry: bool | None = None
    """Of fail; true if left out."""


class BulkOut(BaseModel):
    """How many jobs were matched, changed, refused and missing; a dry run only matches."""

    action: str
    dry_run: bool
    matched: int
    changed: int
    refused: int
    """Matched, and the action is not for the state they were in."""
    missing: int
    """Ids that no job has, or that the filter left out."""
    next: int | None = None
    """Of a part: where the next one begins; null after the last."""
    until: int | None = None
    """Of a part: the highest number the bulk is about."""
    changed_ids: list[int] | None = None
    """Of a part: the numbers of the jobs that were changed."""


async def create_jobs(request: Request, body: JobsIn) -> JobsMadeOut:
    """Enqueue up to 10,000 jobs in one transaction, all or none."""
    context = context_of(request)
    by = context.principal.name[:MAX_NAME]
    described: list[NewJob] = []
    for start in range(0, len(body.jobs), _AT_ONCE):
        described += [context.traced(await native_job(one, context.app, by)) for one in body.jobs[start : start + _AT_ONCE]]
        # Others are waiting for their answers meanwhile.
        await asyncio.sleep(0)
    answers = await context.app.enqueue_jobs(described)
    made = [EnqueuedOut(id=job_uuid(one.id), number=one.id, duplicate=one.is_duplicate) for one in answers]
    duplicates = sum(one.is_duplicate for one in answers)
    return JobsMadeOut(jobs=made, total=len(made), enqueued=len(made) - duplicates, duplicates=duplicates)


async def run_bulk(request: Request, body: BulkIn) -> BulkOut:
    """Do something to many jobs, some hundred in a transaction; returns exactly how many were changed."""
    if body.ids is None and body.filter is None:
        raise InvalidInput("filter", None, "say which jobs are meant: ids, filter or both")
    ids = None if body.ids is None else list(dict.fromkeys(map(_number, body.ids)))
    known = None if ids is None else [number for number in ids if number is not None]
    verb = JOB_VERBS[body.action].in_store or body.action
    wanted = filter_of(body.filter or FilterIn())
    part = None
    if body.limit is not None and not body.dry_run:
        part = await operator_of(request).bulk_part(
            verb, wanted, _options(body), ids=known, after=body.after or 0, until=body.until, limit=body.limit
        )
        done = part.done
    else:
        _refuse_bounds(body)
        done = await operator_of(request).bulk(verb, wanted, _options(body), ids=known, dry_run=body.dry_run)
    missing = 0 if body.ids is None or part is not None else len(body.ids) - done.matched
    return BulkOut(
        action=body.action,
        dry_run=body.dry_run,
        matched=done.matched,
        changed=done.changed,
        refused=done.refused,
        missing=missing,
        next=part and part.next,
        until=part and part.until,
        changed_ids=list(part.changed) if part else None,
    )


def _refuse_bounds(body: BulkIn) -> None:
    for name in ("after", "until"):
        if getattr(body, name) is not None and body.limit is None:
            raise InvalidInput(name, getattr(body, name), "goes with limit")


def _number(ref: int | str) -> int | None:
    return parse_job_id(ref)


def filter_of(body: FilterIn) -> JobFilter:
    """Return which jobs a filter means."""
    if body.status and body.state:
        raise InvalidInput("state", ", ".join(body.state), "give status or state, not both")
    return JobFilter(
        states=tuple(body.state or ()) or tuple(state for word in dict.fromkeys(body.status or ()) for state in states_of(word)),
        tasks=tuple(body.task or ()),
        lanes=tuple(body.lane or ()),
        subject=body.source_id,
        search=body.search,
        correlation_id=body.correlation_id,
        since=body.since,
        priority=body.priority,
        worker=body.worker,
        error=body.error,
    )


def _options(body: BulkIn) -> dict[str, Any]:
    """Pick what the action takes; what it does not take is refused."""
    given = {name: value for name in ("amount", "priority", "reason", "will_retry") if (value := getattr(body, name)) is not None}
    verb = JOB_VERBS[body.action]
    for name, value in given.items():
        if name not in verb.takes:
            raise InvalidInput(name, value, f"{body.action} does not take it")
    if body.action == "set_priority" and body.priority is None:
        raise InvalidInput("priority", None, "is required")
    return {**verb.defaults, **{verb.takes[name]: value for name, value in given.items()}}


ROUTES = (
    Route("POST", "/api/v1/jobs/bulk", Role.PRODUCER, create_jobs, 201, errors=(409,)),
    Route("POST", "/api/v1/bulk", Role.OPERATOR, run_bulk, errors=(409,)),
)
