"""Lanes: list, pause, resume, drain."""

from __future__ import annotations

from datetime import datetime

from fastapi import Request
from pydantic import BaseModel

from windlass.core.access import Role
from windlass.core.gate import Lane
from windlass.web.errors import Refusal
from windlass.web.fields import Listed, PathName
from windlass.web.gates import DrainOut, Force, GateOut, chosen, drain_out, gate_out
from windlass.web.request_context import context_of, operator_of
from windlass.web.route import Route


class LaneOut(BaseModel):
    """A lane with its jobs by state."""

    name: str
    is_paused: bool
    paused_at: datetime | None
    paused_by: str | None
    counts: dict[str, int]


class LanesOut(Listed):
    """Every lane, by name."""

    lanes: list[LaneOut]


def _out(lane: Lane) -> LaneOut:
    return LaneOut(
        name=lane.name,
        is_paused=lane.paused_at is not None,
        paused_at=lane.paused_at,
        paused_by=lane.paused_by,
        counts={state.value: jobs for state, jobs in lane.counts.items()},
    )


async def list_lanes(request: Request) -> LanesOut:
    """List the lanes that were paused, declared or have jobs."""
    lanes = [_out(lane) for lane in await context_of(request).app.lanes.list()]
    return LanesOut(lanes=lanes, total=len(lanes))


async def get_lane(request: Request, name: PathName) -> LaneOut:
    """Read one lane with its jobs by state."""
    for lane in await context_of(request).app.lanes.list():
        if lane.name == name:
            return _out(lane)
    raise Refusal(404, f"lane {name!r} not found: no job, task or operator has named it; GET /api/v1/lanes lists them")


async def pause_lane(request: Request, name: PathName, *, force: Force = False) -> GateOut:
    """Let no job of a lane be claimed from now on, or with `*` of any lane; what runs goes on."""
    lanes = operator_of(request).lanes
    await chosen(lanes, name, force=force)
    return gate_out(await lanes.pause(name))


async def resume_lane(request: Request, name: PathName, *, force: Force = False) -> GateOut:
    """Let the jobs of a lane be claimed again; `*` ends the pause of all, and lanes paused on their own stay so."""
    lanes = operator_of(request).lanes
    await chosen(lanes, name, force=force)
    return gate_out(await lanes.resume(name))


async def drain_lane(request: Request, name: PathName, *, force: Force = False) -> DrainOut:
    """Pause a lane, or with `*` every lane, and count what still runs."""
    lanes = operator_of(request).lanes
    await chosen(lanes, name, force=force)
    return drain_out(await lanes.drain(name))


ROUTES = (
    Route("GET", "/api/v1/lanes", Role.VIEWER, list_lanes),
    Route("GET", "/api/v1/lanes/{name}", Role.VIEWER, get_lane, errors=(404,)),
    Route("POST", "/api/v1/lanes/{name}/pause", Role.OPERATOR, pause_lane, errors=(404,)),
    Route("POST", "/api/v1/lanes/{name}/resume", Role.OPERATOR, resume_lane, errors=(404,)),
    Route("POST", "/api/v1/lanes/{name}/drain", Role.OPERATOR, drain_lane, errors=(404,)),
)
