"""Circuit breakers: what is held back, why, and by whom."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from fastapi import Query, Request
from pydantic import Field, StringConstraints

from windlass.core.access import Role
from windlass.core.breaker import Breaker
from windlass.core.job import MAX_NAME
from windlass.core.record import shaped
from windlass.web.errors import Refusal
from windlass.web.fields import Body, Limit, Listed, PathName, capped
from windlass.web.request_context import context_of, operator_of, reader_of
from windlass.web.route import Route
from windlass.wire.operations import BreakerEventOut, BreakerOut

_SECOND = timedelta(seconds=1)


class BreakersOut(Listed):
    """Breakers by name."""

    breakers: list[BreakerOut]
    next: str | None
    """Send it as `after` for the next page."""


class BreakerEventsOut(Listed):
    """Changes of a breaker, newest first."""

    events: list[BreakerEventOut]


class OpenIn(Body):
    """For how long to hold work back; absent is until it is reset."""

    for_: Annotated[
        Annotated[str, StringConstraints(min_length=1, max_length=100)] | Annotated[float, Field(gt=0)] | None,
        Field(alias="for", description="Seconds, or a duration such as `90s` or `1h30m`."),
    ] = None


def _out(breaker: Breaker) -> BreakerOut:
    return shaped(BreakerOut, breaker, open_seconds=breaker.open_for / _SECOND, probe_job_id=breaker.probe.job_id)


def _known(name: str, breaker: Breaker | None) -> Breaker:
    if breaker is None:
        raise Refusal(404, f"breaker {name!r} not found: none of this name has ever left closed; GET /api/v1/breakers lists them")
    return breaker


async def list_breakers(
    request: Request, after: Annotated[str, Query(max_length=MAX_NAME)] = "", limit: Limit = 100
) -> BreakersOut:
    """List the breakers that ever left closed."""
    breakers = context_of(request).app.breakers
    found = await breakers.list(after=after, limit=capped(limit))
    counted = await breakers.count()
    last = found[-1].name if len(found) == capped(limit) else None
    return BreakersOut(breakers=[_out(one) for one in found], total=counted.total, is_total_exact=counted.is_exact, next=last)


async def get_breaker(request: Request, name: PathName) -> BreakerOut:
    """Read one breaker."""
    return _out(_known(name, await context_of(request).app.breakers.get(name)))


async def list_breaker_history(request: Request, name: PathName, limit: Limit = 100) -> BreakerEventsOut:
    """List the changes of a breaker, newest first."""
    breakers = reader_of(request).breakers
    _known(name, await breakers.get(name))
    found = await breakers.history(name, limit=capped(limit))
    events = [shaped(BreakerEventOut, one) for one in found]
    return BreakerEventsOut(events=events, total=len(events), is_total_exact=len(events) < capped(limit))


async def reset_breaker(request: Request, name: PathName) -> BreakerOut:
    """Close a breaker, even while a run is trying it."""
    return _out(_known(name, await operator_of(request).breakers.reset(name)))


async def force_open_breaker(request: Request, name: PathName, body: OpenIn | None = None) -> BreakerOut:
    """Open a breaker, even while a run is trying it: for a while, or until it is reset."""
    return _out(await operator_of(request).breakers.force_open(name, None if body is None else body.for_))


ROUTES = (
    Route("GET", "/api/v1/breakers", Role.VIEWER, list_breakers),
    Route("GET", "/api/v1/breakers/{name}", Role.VIEWER, get_breaker, errors=(404,)),
    Route("GET", "/api/v1/breakers/{name}/history", Role.VIEWER, list_breaker_history, errors=(404,), is_costly=True),
    Route("POST", "/api/v1/breakers/{name}/reset", Role.OPERATOR, reset_breaker, errors=(404,)),
    Route("POST", "/api/v1/breakers/{name}/force-open", Role.OPERATOR, force_open_breaker, errors=(404,)),
)
