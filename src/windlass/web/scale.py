"""How many workers a lane wants, for KEDA, a HorizontalPodAutoscaler or a script."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Request

from windlass.core.access import Role
from windlass.core.durations import parse_duration
from windlass.core.pool import MAX_SLOTS
from windlass.core.record import record, shaped
from windlass.core.scale import LaneScale
from windlass.web.fields import PathName
from windlass.web.request_context import context_of, reader_of
from windlass.web.route import Route


@record(kw_only=True)
class ScaleOut(LaneScale):
    """How many workers a lane wants, and what that was worked out from."""


async def get_scale(
    request: Request,
    lane: PathName,
    *,
    slots: Annotated[
        int | None, Query(ge=1, le=MAX_SLOTS, description="Slots of a worker for the lane; left out, as workers online have.")
    ] = None,
    within: Annotated[str, Query(max_length=40, description="In what time a backlog should be worked off.")] = "1m",
) -> ScaleOut:
    """Work out how many workers a lane wants, or with `*` every lane but `pull`."""
    length = parse_duration(within, field="within")
    pools = context_of(request).app.settings.pools
    found = await reader_of(request).insights.scale(lane, slots=slots, within=length, pools=pools)
    return shaped(ScaleOut, found)


ROUTES = (Route("GET", "/api/v1/scale/{lane}", Role.VIEWER, get_scale, is_costly=True),)
