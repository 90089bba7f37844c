"""How the queue fares: a summary, series over time, and what Prometheus reads."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated

from fastapi import Query, Request, Response
from pydantic import BaseModel, Field

from windlass.core.access import Role
from windlass.core.durations import parse_duration
from windlass.core.insights import Flow, Summary, Times
from windlass.core.job import MAX_NAME, JobState
from windlass.core.series import Series
from windlass.web.fields import Instant
from windlass.web.request_context import reader_of
from windlass.web.route import Route

_PLAIN = "text/plain; version=0.0.4; charset=utf-8"
_OPEN = "application/openmetrics-text; version=1.0.0; charset=utf-8"
_Name = Annotated[str | None, Query(min_length=1, max_length=MAX_NAME)]


class TimesOut(BaseModel):
    """Percentiles and average in milliseconds; null where no run ended. A percentile is at most a quarter off."""

    p50: float | None
    p95: float | None
    p99: float | None
    average: float | None


class SizesOut(BaseModel):
    """Payload sizes in bytes, of at most the 500 newest jobs of the queue."""

    p50: int
    p95: int
    largest: int
    looked_at: int


class FlowOut(BaseModel):
    """How a task, a lane or all together fare."""

    jobs: dict[JobState, int]
    oldest_pending_seconds: float
    """How long the pending job that has been due the longest has waited; 0 where none waits."""
    in_per_second: float
    """Jobs that came in; estimated from the newest 1,000 where more came within the window."""
    out_per_second: float
    """Runs that ended."""
    drain_seconds: float | None
    """How long the pending jobs last at these rates; 0 where none waits, null while they do not become fewer."""
    wait_ms: TimesOut
    run_ms: TimesOut
    error_rate: float
    """Failed runs among those that completed or failed within the window; 0 where none did."""
    retry_success_rate: float | None
    """Of jobs that were tried again and have ended, the part that completed; from the newest 1,000 that ran more than once."""
    payload_bytes: SizesOut | None


class PoolOut(BaseModel):
    """The slots that workers which are online have for one lane, or with `*` for every lane."""

    lane: str
    slots: int
    busy: int
    use: float


class BreakerTripsOut(BaseModel):
    """A breaker that has left closed at some time."""

    name: str
    state: str
    trips: int
    """How often it opened within 24 hours, as far as the newest 1,000 changes of all breakers show it."""


class PrioritiesOut(BaseModel):
    """Pending jobs by priority."""

    jobs: dict[int, int]
    is_exact: bool
    """Otherwise only 2,000 of them were looked at."""


class SummaryOut(BaseModel):
    """The queue at one moment, by task and by lane; rates and percentiles are those of the window."""

    at: datetime
    since: datetime
    """Where the window begins: five whole minutes before the one that goes on."""
    total: FlowOut
    tasks: dict[str, FlowOut]
    lanes: dict[str, FlowOut]
    left_out: int
    """How many tasks and lanes are not listed: there are at most 500 of each."""
    priorities: PrioritiesOut
    pools: list[PoolOut]
    workers: int
    """How many are online."""
    breakers: list[BreakerTripsOut]
    lost_leases: int
    """Since the beginning."""
    schedule_lateness_seconds: float
    """How overdue the most overdue schedule or delayed job is; 0 where none is."""
    alerts: int


class PointOut(BaseModel):
    """The runs that ended within one step."""

    at: datetime
    """When the step begins."""
    completed: int
    failed: int
    cancelled: int
    out_per_second: float
    error_rate: float
    wait_ms: TimesOut
    run_ms: TimesOut


class SeriesOut(BaseModel):
    """Runs over time; every step is there, also those in which nothing ended."""

    task: str | None
    lane: str | None
    from_: Annotated[datetime, Field(serialization_alias="from")]
    to: datetime
    step_seconds: float
    points: list[PointOut]


def _times(found: Times) -> TimesOut:
    return TimesOut(**found._asdict())


def _flow(flow: Flow) -> FlowOut:
    return FlowOut(
        jobs=dict(flow.jobs),
        oldest_pending_seconds=flow.oldest_pending.total_seconds(),
        in_per_second=flow.in_per_second,
        out_per_second=flow.out_per_second,
        drain_seconds=None if flow.drain is None else flow.drain.total_seconds(),
        wait_ms=_times(flow.wait),
        run_ms=_times(flow.run),
        error_rate=flow.error_rate,
        retry_success_rate=flow.retry_success_rate,
        payload_bytes=None if flow.payload_bytes is None else SizesOut(**flow.payload_bytes._asdict()),
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
        priorities=PrioritiesOut(**found.priorities._asdict()),
        pools=[PoolOut(lane=one.lane, slots=one.slots, busy=one.busy, use=one.use) for one in present.pools],
        workers=present.workers,
        breakers=[
            BreakerTripsOut(name=one.name, state=one.state.value, trips=present.trips.get(one.name, 0))
            for one in present.breakers
        ],
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
            PointOut(
                at=one.at,
                completed=one.completed,
                failed=one.failed,
                cancelled=one.cancelled,
                out_per_second=one.out_per_second,
                error_rate=one.error_rate,
                wait_ms=_times(one.wait),
                run_ms=_times(one.run),
            )
            for one in found.points
        ],
    )


async def get_summary(request: Request) -> SummaryOut:
    """Sum up how every task and lane fares: depth now, rates and percentiles of the last five minutes."""
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
