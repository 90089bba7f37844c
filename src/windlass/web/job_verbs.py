"""What operators do to one job; each answers the row its own statement left."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, Any

from fastapi import Request
from pydantic import Field, StringConstraints

from windlass.core.access import Role
from windlass.core.job import MAX_NAME, MAX_TEXT, JobState
from windlass.core.job_verbs import FAILED_BY_HAND, HIGHEST_BOOST, JOB_VERBS, USUAL_BOOST
from windlass.errors import InvalidTransition
from windlass.web.fields import Body
from windlass.web.job_shape import answer_rules, job_out
from windlass.web.jobs import JobId
from windlass.web.request_context import context_of, operator_of
from windlass.web.route import Route
from windlass.wire.jobs import JobOut

Reason = Annotated[str, StringConstraints(min_length=1, max_length=MAX_TEXT)]


class CancelIn(Body):
    """Why."""

    reason: Reason | None = None


class BoostIn(Body):
    """By how much; nothing goes beyond 100."""

    amount: Annotated[int, Field(ge=1, le=HIGHEST_BOOST)] = USUAL_BOOST


class BuryIn(Body):
    """The error of the dead letter."""

    error: Reason | None = None


class CloneIn(Body):
    """What the new job has in place of what the old one has."""

    payload: dict[str, Any] | None = None


class FailIn(BuryIn):
    """The error that the run ends with."""

    will_retry: bool = True
    """Whether the retry policy decides; otherwise the job fails for good."""


async def cancel_job(request: Request, id: JobId, body: CancelIn | None = None) -> JobOut:  # noqa: A002 - the path's name, as below
    """Cancel a job at once; a late success of its run is refused."""
    return job_out(await operator_of(request).cancel(id, body.reason if body else None), answer_rules(request))


async def retry_job(request: Request, id: JobId) -> JobOut:  # noqa: A002
    """Start a failed job afresh."""
    operator = operator_of(request)
    job = await operator.get(id)
    # The engine would also hurry a job that waits for its retry; the interval scheduler calls that one scheduled, not failed.
    if job.state is not JobState.FAILED:
        raise InvalidTransition(job.id, "retry", job.state, JobState.PENDING)
    return job_out(await operator.retry(job), answer_rules(request))


async def boost_job(request: Request, id: JobId, body: BoostIn | None = None) -> JobOut:  # noqa: A002
    """Raise the priority of a job that is not over."""
    return job_out(await operator_of(request).boost(id, (body or BoostIn()).amount), answer_rules(request))


async def fail_job(request: Request, id: JobId, body: FailIn | None = None) -> JobOut:  # noqa: A002
    """End a run as failed, by its retry policy or for good; a due job waits for its retry, one that is not due cannot."""
    given = body or FailIn()
    failed = await operator_of(request).fail(id, given.error or FAILED_BY_HAND, will_retry=given.will_retry)
    return job_out(failed, answer_rules(request))


async def bury_job(request: Request, id: JobId, body: BuryIn | None = None) -> JobOut:  # noqa: A002
    """Fail a waiting job for good, with a dead letter."""
    error = (body.error if body else None) or FAILED_BY_HAND
    return job_out(await operator_of(request).bury(id, error), answer_rules(request))


async def clone_job(request: Request, id: JobId, body: CloneIn | None = None) -> JobOut:  # noqa: A002
    """Make a new job from a finished one, which becomes its parent."""
    by = context_of(request).principal.name[:MAX_NAME]
    return job_out(await operator_of(request).clone(id, by, body.payload if body else None), answer_rules(request))


def _moving(name: str) -> Callable[..., Awaitable[JobOut]]:
    """Make the handler of a verb that needs nothing but the job."""

    async def move(request: Request, id: JobId) -> JobOut:  # noqa: A002
        return job_out(await getattr(operator_of(request), name)(id), answer_rules(request))

    # The name is the operation's id in the API's documentation.
    move.__name__ = _OPERATIONS.get(name, f"{name}_job")
    move.__doc__ = JOB_VERBS[name].summary
    return move


_OPERATIONS = {"run_now": "run_job_now", "take_lease": "take_lease"}
_HANDLERS: dict[str, Callable[..., Awaitable[JobOut]]] = {
    "cancel": cancel_job,
    "retry": retry_job,
    "boost": boost_job,
    "fail": fail_job,
    "bury": bury_job,
}
_ELSEWHERE = {"clone", "delete", "set_priority"}
"""Verbs with a route of another kind, or only in bulk."""
ROUTES = (
    *(
        Route(
            "POST",
            f"/api/v1/jobs/{{id}}/{name.replace('_', '-')}",
            Role.OPERATOR,
            _HANDLERS.get(name) or _moving(name),
            errors=(404, 409),
        )
        for name in JOB_VERBS
        if name not in _ELSEWHERE
    ),
    Route("POST", "/api/v1/jobs/{id}/clone", Role.OPERATOR, clone_job, 201, errors=(404, 409)),
)
