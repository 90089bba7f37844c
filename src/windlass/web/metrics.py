"""Queue statistics: a summary, series over time, and what Prometheus reads."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated

from fastapi import Query, Request, Response
from pydantic import BaseModel, Field

from windlass.core.access import Role
from windlass.core.durations import parse_duration
from windlass.core.insights import Flow, Summary
from windlass.core.job import MAX_NAME
from windlass.core.record import shaped
from windlass.core.series import Series
from windlass.web.fields import Instant
from windlass.web.request_context import reader_of
from windlass.web.route import Route
from windlass.wire.insights import BreakerTripsOut, FlowOut, PointOut, PoolOut, PrioritiesOut, SizesOut, SummaryOut, TimesOut

_PLAIN = "text/plain; version=0.0.4; charset=utf-8"
_OPEN = "application/openmetrics-text; version=1.0.0; charset=utf-8"
_Name = Annotated[str | None, Query(min_length=1, max_length=MAX_NAME)]


class SeriesOut(BaseModel):
    """Runs over time; every step is there, also those in which nothing ended."""

    task: str | None
    lane: str | None
    from_: Annotated[datetime, Field(serialization_alias="from")]
    to: datetime
    step_seconds: float
    points: list[PointOut]


def _flow(flow: Flow) -> FlowOut:
    return FlowOut(
        jobs=dict(flow.jobs),
        oldest_pending_seconds=flow.oldest_pending.total_seconds(),
        in_per_second=flow.in_per_second,
        out_per_second=flow.out_per_second,
        drain_seconds=None if flow.drain is None else flow.drain.total_seconds(),
        wait_ms=shaped(TimesOut, flow.wait),
        run_ms=shaped(TimesOut, flow.run),
        error_rate=flow.error_rate,
        retry_success_rate=flow.retry_success_rate,
        payload_bytes=None if flow.payload_bytes is None else shaped(SizesOut, flow.payload_bytes),
    )


def _flows(flows: Mapping[str, Flow]) -> dict[str, FlowOut]:
    return {name: _flow(flow) for name, flow in flows.items()}


def _summary(found: Summary) -> SummaryOut:
    present = found.present
    return SummaryOut(
        at=present.at,
        since=found.since,
        total=_flow(found.total),
        tasks=_flows(found.tasks),
        lanes=_flows(found.lanes),
        left_out=found.left_out,
        priorities=shaped(PrioritiesOut, found.priorities),
        pools=tuple(shaped(PoolOut, one) for one in present.pools),
        workers=present.workers,
        breakers=tuple(shaped(BreakerTripsOut, one, trips=present.trips.get(one.name, 0)) for one in present.breakers),
        lost_leases=present.lost_leases,
        schedule_lateness_seconds=present.lateness.total_seconds(),
        alerts=present.alerts,
    )


def _series(found: Series) -> SeriesOut:
    query = found.query
    return SeriesOut(
        task=query.task,
        lane=query.lane,
        from_=query.first,
        to=query.last,
        step_seconds=query.step.total_seconds(),
        points=[
            shaped(PointOut, one, wait_ms=shaped(TimesOut, one.wait), run_ms=shaped(TimesOut, one.run)) for one in found.points
        ],
    )


async def get_summary(request: Request) -> SummaryOut:
    """Return the statistics of every task and lane: depth now, rates and percentiles of the last five minutes."""
    return _summary(await reader_of(request).insights.summary())


async def get_series(
    request: Request,
    *,
    task: _Name = None,
    lane: _Name = None,
    from_at: Annotated[Instant | None, Query(alias="from", description="Left out, an hour before `to`; 7 days at most.")] = None,
    to: Annotated[Instant | None, Query(description="Left out, now.")] = None,
    step: Annotated[str, Query(max_length=40, description="Whole minutes, as in `5m`; at most 1,000 steps.")] = "1m",
) -> SeriesOut:
    """Read the runs that ended over time, of all tasks and lanes or of one."""
    length = parse_duration(step, field="step")
    return _series(await reader_of(request).insights.series(task=task, lane=lane, from_at=from_at, to_at=to, step=length))


async def get_metrics(request: Request) -> Response:
    """Read the metrics for Prometheus, as text or as OpenMetrics, whichever the Accept header asks for."""
    from windlass.prometheus import expose  # noqa: PLC0415 - loaded by servers that are scraped only

    found = await expose(await reader_of(request).store(), request.headers.get("accept", ""))
    return Response(found.body, headers={"content-type": found.content_type})


ROUTES = (
    Route("GET", "/api/v1/metrics", Role.VIEWER, get_series, is_costly=True),
    Route("GET", "/api/v1/metrics/summary", Role.VIEWER, get_summary, is_costly=True),
    Route("GET", "/metrics", Role.VIEWER, get_metrics, kinds=(_PLAIN, _OPEN), is_costly=True, is_scraped=True),
)
