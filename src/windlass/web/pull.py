"""Pull workers ask for jobs."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from datetime import datetime, timedelta
from typing import Annotated, Any

from fastapi import Query, Request, Response
from pydantic import BaseModel, Field, TypeAdapter

from windlass.core.access import MAX_LANES, Role
from windlass.core.job import MAX_NAME, Claimed, Lease
from windlass.core.pool import PULL_LANE
from windlass.core.pull import MAX_PULL_TOKEN, Pull, lease_length
from windlass.core.retry import RetrySpec
from windlass.core.settings import PULL
from windlass.errors import InvalidInput, StoreError
from windlass.web.errors import Refusal
from windlass.web.fields import LINE, Body, Name
from windlass.web.pull_protocol import as_php, check_lane, parsed, read_body, worker_of
from windlass.web.pull_settings import PullSettings
from windlass.web.request_context import RequestContext, context_of
from windlass.web.route import Route

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]

_SECOND = timedelta(seconds=1)
_LONGEST_S = 10**9
"""Beyond every bound, and still a duration."""
MAX_TASKS = 1000


class PulledOut(BaseModel):
    """A job to be worked on, and what earlier runs left behind."""

    id: int
    task: str
    lane: str
    payload: dict[str, Any]
    last_cursor: str | None
    target_count: int | None
    progress_count: int
    result_count: int
    attempts: int
    """Which attempt this is, from 1."""
    max_attempts: int
    attempt_id: str
    """Send it along with every report and heartbeat."""
    timeout_sec: float | None
    subject: str | None
    correlation_id: str | None
    parent_id: int | None
    slot_at: datetime | None
    execution: int
    """Which run of the job this is, from 1."""
    consecutive_failures: int
    """How many runs before this one have failed in a row."""
    pulled_at: datetime
    """When the lease began, by the database's clock."""
    traceparent: str | None
    """The W3C trace context of the enqueue, to link the run's span to."""


class PullOut(BaseModel):
    """A job with its lease, or none."""

    job: PulledOut | None
    lease_expires_at: datetime | None = None
    lease_sec: int | None = None
    stopped: bool = False
    """The lane is paused: no job will come until it is resumed."""


class PullIn(Body):
    """What a worker that has code for several tasks asks for."""

    lanes: Annotated[list[Name], Field(min_length=1, max_length=MAX_LANES)]
    tasks: Annotated[list[Name], Field(max_length=MAX_TASKS)] | None = None
    """Left out or empty: every task."""
    lease_sec: int | None = None
    """How long the job is yours at first, brought within 30 to 600."""
    pull_id: Name | None = None
    """A repeated pull of the same name gets the same lease again."""
    wait: Annotated[float, Field(ge=0)] = 0
    """How many seconds to wait for a job; more than 30 is taken as 30."""


_Word = Annotated[str, Query(min_length=1, max_length=MAX_NAME, pattern=LINE)]


async def pull_job(
    request: Request,
    *,
    lease_sec: Annotated[int | None, Query(description="How long the job is yours at first, brought within 30 to 600.")] = None,
    lane: _Word = PULL_LANE,
    task: _Word | None = None,
    pull_id: _Word | None = None,
    wait: Annotated[float, Query(ge=0, description="How many seconds to wait for a job; more than 30 is taken as 30.")] = 0,
) -> PullOut:
    """Take one job, waiting for it if asked to; the same `pull_id` gives the same lease again."""
    raise NotImplementedError


_NUMBER = TypeAdapter(int)
_SECONDS = TypeAdapter(Annotated[float, Query(ge=0)])
_NAME = TypeAdapter(_Word)


def _read(request: Request, name: str, kind: TypeAdapter[Any], default: Any = None) -> Any:
    given = request.query_params.get(name)
    if given is None:
        return default
    try:
        return kind.validate_python(given)
    except ValueError as error:
        complaint = error.errors()[0]["msg"]  # type: ignore[attr-defined]  # pydantic's error is a ValueError
        raise InvalidInput(name, given, f"{complaint[:1].lower()}{complaint[1:]}") from None


async def pull_hot(request: Request) -> Response:
    """Answer as `pull_job` is documented to, without FastAPI's own work in between."""
    if request.method == "HEAD":
        raise Refusal(405, "HEAD would take a job and not return it", {"allow": "GET, POST"})
    task = _read(request, "task", _NAME)
    asked = PullIn(
        lanes=[_read(request, "lane", _NAME, PULL_LANE)],
        tasks=None if task is None else [task],
        lease_sec=_read(request, "lease_sec", _NUMBER),
        pull_id=_read(request, "pull_id", _NAME),
        wait=_read(request, "wait", _SECONDS, 0.0),
    )
    return await _pull(request, asked)


async def pull_any_job(request: Request, body: PullIn) -> PullOut:
    """Take one job of any of several lanes and tasks; otherwise as with GET."""
    raise NotImplementedError


async def pull_any_hot(request: Request) -> Response:
    """Answer as `pull_any_job` is documented to."""
    return await _pull(request, parsed(PullIn, await read_body(request)))


async def _pull(request: Request, body: PullIn) -> Response:
    context = context_of(request)
    for lane in body.lanes:
        check_lane(context.principal, lane)
    asked = body.lease_sec
    pull_settings = await context.server.pull_settings.current()
    length = lease_length(None if asked is None else min(max(asked, 0), _LONGEST_S) * _SECOND, pull_settings.lease)
    lease = Lease(secrets.randbelow(MAX_PULL_TOKEN) + 1, worker_of(context), length)
    wait_s = min(body.wait, context.server.limits.pull_within.total_seconds())
    pull = Pull(tuple(body.lanes), lease, tuple(body.tasks or ()), body.pull_id)
    job = await _take(context, pull, wait_s, request.receive)
    if job is not None:
        return _answer(written(job, length, _most_attempts(job, context, pull_settings)))
    return _answer('{"job":null,"stopped":true}' if await _are_paused(context, body.lanes) else '{"job":null}')


def _most_attempts(job: Claimed, context: RequestContext, pull_settings: PullSettings) -> int:
    """Return how many tries a job has, by its own rule where no number was given."""
    if job.max_attempts is not None:
        return job.max_attempts
    profile = RetrySpec.decode(job.retry).profile
    return pull_settings.max_attempts if profile == PULL else context.server.profiles[profile].max_attempts


async def _are_paused(context: RequestContext, names: Sequence[str]) -> bool:
    lanes = context.app.lanes
    for name in names:
        if not (await lanes.get(name)).is_paused:
            return False
    return True


async def _take(context: RequestContext, pull: Pull, wait_s: float, receive: Receive) -> Claimed | None:
    """Wait in the queue, and leave it when the client goes away."""
    pull_queue = context.server.pull_queue
    if not wait_s:
        return await pull_queue.take(pull, wait_s=0, gone=asyncio.get_running_loop().create_future())
    failure: StoreError | None = None
    job: Claimed | None = None
    async with asyncio.TaskGroup() as group:
        gone = group.create_task(_until_gone(receive))
        try:
            job = await pull_queue.take(pull, wait_s=wait_s, gone=gone)
        except StoreError as error:
            # Raised here it would come wrapped.
            failure = error
        gone.cancel()
    if failure is not None:
        raise failure
    return job


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _answer(text: str) -> Response:
    return Response(text, media_type="application/json")


def written(job: Claimed, length: timedelta, most_attempts: int) -> str:
    """Write the answer; the payload's text goes out as it was kept."""
    fields = {
        "id": job.id,
        "task": job.task,
        "lane": job.lane,
        "last_cursor": job.last_cursor,
        "target_count": job.target_count,
        "progress_count": job.progress_count,
        "result_count": job.result_count,
        "attempts": job.attempt,
        "max_attempts": most_attempts,
        "attempt_id": str(job.token),
        "timeout_sec": None if job.timeout_us is None else job.timeout_us / 1_000_000,
        "subject": job.subject,
        "correlation_id": job.correlation_id,
        "parent_id": job.parent_id,
        "slot_at": None if job.slot_at is None else _instant(job.slot_at),
        "execution": job.execution,
        "consecutive_failures": job.consecutive_failures,
        "pulled_at": _instant(job.claimed_at),
        "traceparent": job.traceparent,
    }
    text = json.dumps(fields, ensure_ascii=False, separators=(",", ":"))
    lease = f'"lease_expires_at":"{_instant(job.lease_expires_at)}","lease_sec":{length // _SECOND}'
    return f'{{"job":{text[:-1]},"payload":{job.payload}}},{lease}}}'


def _instant(moment: datetime) -> str:
    return moment.isoformat().replace("+00:00", "Z")


ROUTES = (
    Route("GET", "/api/pull_job", Role.WORKER, pull_job, hot=pull_hot),
    Route("POST", "/api/pull_job", Role.WORKER, pull_any_job, hot=pull_any_hot),
    Route("GET", "/api/pull_job.php", Role.WORKER, as_php(pull_job), hot=pull_hot),
)
