"""The lanes: how much waits and runs in each, the workers that serve it, and whether it is paused."""

from __future__ import annotations

from typing import NamedTuple

from fastapi import Request, Response

from windlass.core.access import Role
from windlass.core.gate import Lane
from windlass.core.insights import Flow, Present
from windlass.core.job import JobState
from windlass.core.pool import EVERY_LANE
from windlass.web.dashboard.charts import Gauge, gauge, ms_text, rate_text
from windlass.web.dashboard.frame import draw
from windlass.web.request_context import context_of
from windlass.web.route import Route

SHOWN = (JobState.PENDING, JobState.SCHEDULED, JobState.RUNNING, JobState.PAUSED, JobState.COMPLETED, JobState.FAILED)


class LaneRow(NamedTuple):
    """A lane with its statistics and the slots that serve it."""

    lane: Lane
    flow: Flow | None
    gauge: Gauge


def lane_gauge(present: Present, lane: str, running: int) -> Gauge:
    """Show how many runs a lane has of the slots that it could have: its own, and those for every lane."""
    served = {lane, EVERY_LANE}
    return gauge(running, sum(pool.slots for pool in present.pools if pool.lane in served))


async def show_lanes(request: Request) -> Response:
    """Show the lanes."""
    seen = await context_of(request).server.snapshots.now()
    summary = seen.summary
    rows = [
        LaneRow(
            lane,
            summary.lanes.get(lane.name),
            lane_gauge(summary.present, lane.name, lane.counts.get(JobState.RUNNING, 0)),
        )
        for lane in seen.lanes
    ]
    return draw(
        request,
        "lanes.html",
        summary.present.at,
        here="/lanes",
        title="Lanes",
        rows=rows,
        pools=summary.present.pools,
        shown=SHOWN,
        rate=rate_text,
        ms=ms_text,
    )


ROUTES = (Route("GET", "/lanes", Role.VIEWER, show_lanes, is_page=True, is_costly=True),)
