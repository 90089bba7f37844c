"""Pull workers report, renew their leases and ask how their job stands."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Annotated, Any

from fastapi import Query, Request, Response
from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from windlass.core.access import Role
from windlass.core.item import MAX_ITEMS
from windlass.core.job import JobState
from windlass.core.report import LONGEST_EXTENSION, MAX_IDEMPOTENCY_KEY, Report, ReportAnswer
from windlass.errors import InvalidInput, JobNotFound, LeaseLost, TokenNeeded
from windlass.web.errors import Refusal
from windlass.web.fields import Body
from windlass.web.outcomes import OutcomeIn
from windlass.web.pull_protocol import (
    ATTEMPT_ID_NEEDED,
    JOB_NOT_FOUND,
    LEASE_LOST,
    AttemptId,
    JobRef,
    PullProblem,
    Seconds,
    as_php,
    check_job,
    check_lane,
    job_number,
    json_answer,
    parsed,
    pull_status,
    read_body,
    store_of,
    token_of,
    worker_of,
)
from windlass.web.request_context import context_of
from windlass.web.route import Route

_MOST_S = LONGEST_EXTENSION.total_seconds()


class ReportIn(Body):
    """What a worker has found and how far it is; `error` ends the attempt, `done` the job."""

    job_id: JobRef
    attempt_id: AttemptId | None = None
    items: Annotated[list[dict[str, Any]], Field(max_length=MAX_ITEMS)] | None = None
    cursor: str | None = None
    """Where to go on; left out, the one before stays."""
    done: bool | None = None
    extend_lease_sec: Seconds | None = None
    """60 to 600; 120 if left out."""
    error: str | None = None
    log: str | None = None
    idempotency_key: Annotated[str, Field(max_length=MAX_IDEMPOTENCY_KEY)] | None = None
    """Names the report: sent twice, it counts once."""
    outcome: OutcomeIn | None = None
    """How the run goes or went, in more detail than `done` and `error`; without those two."""


class ReportOut(BaseModel):
    """What the report did."""

    ok: bool = True
    added: int
    duplicates: int
    lease_expires_at: datetime | None
    done: bool
    done_reason: str | None
    should_stop: bool
    idempotent: bool = False
    """A report of this key was taken before: this is its answer, and nothing was changed."""
    state: JobState | None = None
    """The state of the job now; only after a report with an `outcome`."""


class HeartbeatIn(Body):
    """A sign of life."""

    job_id: JobRef
    attempt_id: AttemptId
    extend_lease_sec: Seconds | None = None


class HeartbeatOut(BaseModel):
    """Until when the job is held, and whether to go on."""

    ok: bool = True
    lease_expires_at: datetime
    should_stop: bool


class StatusOut(BaseModel):
    """How a job stands."""

    job_id: int
    status: str
    should_stop: bool
    reason: str | None


async def report_results(request: Request, body: ReportIn) -> ReportOut:
    """Report items, progress, an error or the end of the work; everything counts, or nothing."""
    raise NotImplementedError


def _extension(seconds: float | None) -> timedelta | None:
    return None if seconds is None else timedelta(seconds=min(max(seconds, 0), _MOST_S))


@contextmanager
def _in_words() -> Iterator[None]:
    """Translate errors into the pull API's messages."""
    try:
        yield
    except JobNotFound:
        raise Refusal(404, JOB_NOT_FOUND) from None
    except TokenNeeded:
        raise Refusal(409, ATTEMPT_ID_NEEDED) from None
    except LeaseLost:
        raise Refusal(409, LEASE_LOST) from None


async def report_hot(request: Request) -> Response:
    """Answer as `report_results` is documented to, without FastAPI's own work in between."""
    context = context_of(request)
    fields = await read_body(request)
    store = await store_of(request)
    with _in_words():
        number = job_number(fields.get("job_id"))
        body = parsed(ReportIn, fields)
        report = _report(number, worker_of(context), body)
        await check_job(context, store, number)
        answer = await store.report(report)
    if answer.is_cancelled:
        return json_answer(PullProblem(error="cancelled", should_stop=True), 409)
    left_out = {"idempotent": not answer.is_repeated, "state": body.outcome is None}
    return json_answer(_report_out(answer), skip={name for name, is_out in left_out.items() if is_out})


def _report(number: int, worker: str, body: ReportIn) -> Report:
    return Report(
        job_id=number,
        worker=worker,
        token=token_of(body.attempt_id),
        items=body.items or (),
        cursor=body.cursor,
        is_done=bool(body.done),
        extend=_extension(body.extend_lease_sec),
        error=body.error,
        log=body.log,
        key=body.idempotency_key or None,
        reported=None if body.outcome is None else body.outcome.reported(),
    )


def _report_out(answer: ReportAnswer) -> ReportOut:
    return ReportOut(
        added=answer.added,
        duplicates=answer.duplicates,
        lease_expires_at=answer.lease_expires_at,
        done=answer.is_done,
        done_reason=answer.done_reason,
        should_stop=answer.should_stop,
        idempotent=answer.is_repeated,
        state=answer.state,
    )


async def heartbeat(request: Request, body: HeartbeatIn) -> HeartbeatOut:
    """Renew a job's lease and return whether to stop; nothing else changes."""
    raise NotImplementedError


async def heartbeat_by_query(
    request: Request,
    job_id: Annotated[str, Query(max_length=64, description="The job's number, or its UUID.")],
    attempt_id: Annotated[str, Query(max_length=64, description="What the pull gave.")],
    extend_lease_sec: Annotated[float | None, Query(description="60 to 600; 120 if left out.")] = None,
) -> HeartbeatOut:
    """Renew a job's lease and return whether to stop, with everything in the address."""
    raise NotImplementedError


_SECONDS = TypeAdapter(Annotated[float, Field(allow_inf_nan=False)])


async def heartbeat_hot(request: Request) -> Response:
    """Answer as `heartbeat` is documented to, without FastAPI's own work in between."""
    fields = await read_body(request)
    with _in_words():
        number = job_number(fields.get("job_id"))
        body = parsed(HeartbeatIn, fields)
        return await _renew(request, number, body.attempt_id, body.extend_lease_sec)


async def heartbeat_by_query_hot(request: Request) -> Response:
    """Answer as `heartbeat_by_query` is documented to."""
    _refuse_head(request)
    given = request.query_params
    seconds = given.get("extend_lease_sec")
    try:
        extend = None if seconds is None else _SECONDS.validate_python(seconds)
    except ValidationError:
        raise InvalidInput("extend_lease_sec", seconds, "must be a number of seconds") from None
    with _in_words():
        return await _renew(request, job_number(given.get("job_id")), given.get("attempt_id"), extend)


async def _renew(request: Request, number: int, attempt_id: object, seconds: float | None) -> Response:
    context = context_of(request)
    token = token_of(attempt_id)
    if token is None:
        raise InvalidInput("attempt_id", attempt_id, "is required")
    worker_of(context)
    store = await store_of(request)
    await check_job(context, store, number)
    held = await store.heartbeat(number, token, _extension(seconds))
    return json_answer(HeartbeatOut(lease_expires_at=held.lease_expires_at, should_stop=held.should_stop))


async def job_status(
    request: Request, job_id: Annotated[str, Query(max_length=64, description="The job's number, or its UUID.")]
) -> StatusOut:
    """Return how a job stands, and whether work on it is still wanted."""
    raise NotImplementedError


async def job_status_hot(request: Request) -> Response:
    """Answer as `job_status` is documented to."""
    context = context_of(request)
    with _in_words():
        number = job_number(request.query_params.get("job_id"))
        found = await (await store_of(request)).job_status(number)
    check_lane(context.principal, found.lane)
    worker_of(context)
    shown = StatusOut(job_id=found.job_id, status=pull_status(found.state), should_stop=found.should_stop, reason=found.reason)
    return json_answer(shown)


def _refuse_head(request: Request) -> None:
    if request.method == "HEAD":
        raise Refusal(405, "HEAD would change something and return nothing", {"allow": "GET, POST"})


_CONFLICT = {409: PullProblem}
ROUTES = tuple(
    route
    for path, name in (("", lambda handler: handler), (".php", as_php))
    for route in (
        Route(
            "POST",
            f"/api/report_results{path}",
            Role.WORKER,
            name(report_results),
            errors=(404,),
            others=_CONFLICT,
            hot=report_hot,
        ),
        Route("POST", f"/api/heartbeat{path}", Role.WORKER, name(heartbeat), errors=(404, 409), hot=heartbeat_hot),
        Route(
            "GET",
            f"/api/heartbeat{path}",
            Role.WORKER,
            name(heartbeat_by_query),
            errors=(404, 409),
            hot=heartbeat_by_query_hot,
        ),
        Route("GET", f"/api/job_status{path}", Role.WORKER, name(job_status), errors=(404,), hot=job_status_hot),
    )
)
