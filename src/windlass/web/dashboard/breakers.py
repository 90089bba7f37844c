"""The circuit breakers that ever left closed, with their last changes."""

from __future__ import annotations

from typing import Annotated, NamedTuple

from fastapi import Query, Request, Response

from windlass.core.access import Role
from windlass.core.breaker import Breaker, BreakerEvent, BreakerState
from windlass.core.job import MAX_NAME
from windlass.web.dashboard.frame import draw, now
from windlass.web.request_context import reader_of
from windlass.web.route import Route

_SIZE = 50
_EVENTS = 20
COLOURS = {BreakerState.CLOSED: "completed", BreakerState.OPEN: "failed", BreakerState.HALF_OPEN: "retry"}


class BreakerRow(NamedTuple):
    """A breaker with its newest changes."""

    breaker: Breaker
    colour: str
    events: list[BreakerEvent]


async def show_breakers(request: Request, after: Annotated[str, Query(max_length=MAX_NAME)] = "") -> Response:
    """Show the breakers."""
    at = await now(request)
    breakers = reader_of(request).breakers
    found = await breakers.list(after=after, limit=_SIZE)
    rows = [BreakerRow(one, COLOURS[one.state], await breakers.history(one.name, limit=_EVENTS)) for one in found]
    following = found[-1].name if len(found) == _SIZE else None
    return draw(request, "breakers.html", at, here="/breakers", title="Breakers", rows=rows, next=following, colours=COLOURS)


ROUTES = (Route("GET", "/breakers", Role.VIEWER, show_breakers, is_page=True, is_costly=True),)
