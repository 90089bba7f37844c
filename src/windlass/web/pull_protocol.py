"""What the routes of pull workers have in common: the caller, the fields and statuses of the pull API, and its errors."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from functools import wraps
from typing import Annotated, Any, TypeVar

from fastapi import Request, Response
from pydantic import BaseModel, Field, ValidationError

from windlass.client.job_ref import number_of
from windlass.core.access import Principal
from windlass.core.job import MAX_NAME, JobState
from windlass.core.payload import decode_request
from windlass.errors import InvalidInput
from windlass.store import Store
from windlass.web.errors import BadBody, Refusal
from windlass.web.fields import Body, whole
from windlass.web.request_context import RequestContext, context_of

MISSING_JOB_ID = "missing_job_id"
JOB_NOT_FOUND = "job_not_found"
LEASE_LOST = "lease_lost"
ATTEMPT_ID_NEEDED = "attempt_id_required"
_TOKENS = 2**63
_DIGITS = re.compile(r"[0-9]{1,19}", re.ASCII)
_MOST_BYTES = 2**30
_STATUS = {JobState.RUNNING: "processing", JobState.COMPLETED: "done", JobState.CANCELLED: "done", JobState.FAILED: "failed"}

AttemptId = Annotated[
    int | str,
    Field(description="What the pull gave: sent as text, since jq and JavaScript round long numbers; a number is also taken."),
]
JobRef = Annotated[int | str, Field(description="The job's number, or its UUID.")]
Seconds = Annotated[int | float, Field(description="Seconds; brought within the bounds.")]


class PullProblem(BaseModel):
    """Why a report was refused, and whether to stop."""

    error: str
    should_stop: bool = False


def pull_status(state: JobState) -> str:
    """Return a state by the pull API's name."""
    return _STATUS.get(state, "queued")


def worker_of(context: RequestContext) -> str:
    """Return the name under which the caller holds leases, and note that it is there."""
    principal = context.principal
    name = principal.worker or principal.name[:MAX_NAME]
    context.server.workers_seen.note(name, context.address[:MAX_NAME] or "unknown")
    return name


def check_lane(principal: Principal, lane: str) -> None:
    """Refuse a lane that the caller's token is not for."""
    if principal.lanes is not None and lane not in principal.lanes:
        allowed = ", ".join(principal.lanes)
        raise Refusal(403, f"lane: the token of {principal.name} is for {allowed} and not for {lane}")


async def check_job(context: RequestContext, store: Store, number: int) -> None:
    """Refuse a job of a lane that the caller's token is not for; a job never changes its lane."""
    if context.principal.lanes is not None:
        check_lane(context.principal, (await store.job_status(number)).lane)


def job_number(given: object) -> int:
    """Read which job is meant; raises JobNotFound for what no job can be called."""
    if given is None or given == "":
        raise Refusal(400, MISSING_JOB_ID)
    given = whole(given)
    if isinstance(given, bool) or not isinstance(given, int | str):
        raise InvalidInput("job_id", given, "must be a job's number or UUID")
    return number_of(given)


def token_of(given: object) -> int | None:
    """Read an `attempt_id`, a number or its text; None when it was left out."""
    if given is None or given == "":
        return None
    number = int(given) if isinstance(given, str) and _DIGITS.fullmatch(given) else whole(given)
    if isinstance(number, bool) or not isinstance(number, int) or not 0 < number < _TOKENS:
        raise InvalidInput("attempt_id", given, "must be the attempt_id that the pull gave")
    return number


async def read_body(request: Request) -> dict[str, Any]:
    """Read a body that must be a JSON object."""
    body = decode_request(await request.body(), field="body", limit=_MOST_BYTES)
    if not isinstance(body, dict):
        raise InvalidInput("body", body, "must be a JSON object")
    return body


B = TypeVar("B", bound=Body)


def parsed(model: type[B], fields: Mapping[str, Any]) -> B:
    """Read a body by its model."""
    try:
        return model.model_validate(fields)
    except ValidationError as error:
        raise BadBody(error, model, fields) from None


def json_answer(model: BaseModel, status: int = 200, skip: set[str] | None = None) -> Response:
    """Answer with a record."""
    return Response(model.model_dump_json(exclude=skip), status, media_type="application/json")


Handler = Callable[..., Awaitable[Any]]


def as_php(handler: Handler) -> Handler:
    """Document a route under a second name, for its path with `.php`."""

    @wraps(handler)
    async def twin(*args: Any, **kwargs: Any) -> Any:
        return await handler(*args, **kwargs)

    twin.__name__ = f"{handler.__name__}_php"
    return twin


async def store_of(request: Request) -> Store:
    """Return the store."""
    return await context_of(request).app.store()
