"""Lanes: list, pause, resume, drain."""

from __future__ import annotations

from fastapi import Request

from windlass.core.access import Role
from windlass.core.gate import Lane
from windlass.core.record import shaped
from windlass.web.errors import Refusal
from windlass.web.fields import Listed, PathName
from windlass.web.gates import Force, chosen
from windlass.web.request_context import context_of, operator_of
from windlass.web.route import Route
from windlass.wire.operations import DrainOut, GateOut, LaneOut


class LanesOut(Listed):
    """Every lane, by name."""

    lanes: list[LaneOut]


def _out(lane: Lane) -> LaneOut:
    return shaped(LaneOut, lane, is_paused=lane.paused_at is not None)


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
    lanes = await chosen(operator_of(request).lanes, name, force=force)
    return shaped(GateOut, await lanes.pause(name))


async def resume_lane(request: Request, name: PathName, *, force: Force = False) -> GateOut:
    """Let the jobs of a lane be claimed again; `*` ends the pause of all, and lanes paused on their own stay so."""
    lanes = await chosen(operator_of(request).lanes, name, force=force)
    return shaped(GateOut, await lanes.resume(name))


async def drain_lane(request: Request, name: PathName, *, force: Force = False) -> DrainOut:
    """Pause a lane, or with `*` every lane, and count what still runs."""
    lanes = await chosen(operator_of(request).lanes, name, force=force)
    return shaped(DrainOut, await lanes.drain(name))


ROUTES = (
    Route("GET", "/api/v1/lanes", Role.VIEWER, list_lanes),
    Route("GET", "/api/v1/lanes/{name}", Role.VIEWER, get_lane, errors=(404,)),
    Route("POST", "/api/v1/lanes/{name}/pause", Role.OPERATOR, pause_lane, errors=(404,)),
    Route("POST", "/api/v1/lanes/{name}/resume", Role.OPERATOR, resume_lane, errors=(404,)),
    Route("POST", "/api/v1/lanes/{name}/drain", Role.OPERATOR, drain_lane, errors=(404,)),
)
