"""How many workers a lane wants, for KEDA, a HorizontalPodAutoscaler or a script."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import Query, Request
from pydantic import BaseModel

from windlass.core.access import Role
from windlass.core.durations import parse_duration
from windlass.core.pool import MAX_SLOTS
from windlass.web.fields import PathName
from windlass.web.request_context import context_of, reader_of
from windlass.web.route import Route


class ScaleOut(BaseModel):
    """How many workers a lane wants, and what that was worked out from."""

    lane: str
    at: datetime
    workers: int
    """How many workers should run."""
    slots: float
    """How many jobs should run side by side."""
    slots_per_worker: int
    online: int
    """How many workers that serve the lane are online."""
    pending: int
    """Due jobs that may be claimed: those that a pause or a breaker holds back are left out."""
    running: int
    in_per_second: float
    run_seconds: float | None
    """How long a run took on average within the last minutes; null where none ended."""


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
    return ScaleOut(
        lane=found.lane,
        at=found.at,
        workers=found.workers,
        slots=found.slots,
        slots_per_worker=found.slots_per_worker,
        online=found.online,
        pending=found.pending,
        running=found.running,
        in_per_second=found.in_per_second,
        run_seconds=found.run_seconds,
    )


ROUTES = (Route("GET", "/api/v1/scale/{lane}", Role.VIEWER, get_scale, is_costly=True),)
