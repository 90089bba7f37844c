"""How the queue fares, over HTTP: the verbs, and the records of their answers."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated

from pydantic import Field

from windlass.core.breaker import BreakerState
from windlass.core.job import JobState
from windlass.core.record import record
from windlass.core.scale import LaneScale
from windlass.http_client.ask import API, Ask, Duration, as_one, get, seconds, word


@record(kw_only=True)
class RemoteTimes:
    """Percentiles and average in milliseconds; None where no run ended."""

    p50: float | None = None
    p95: float | None = None
    p99: float | None = None
    average: float | None = None


@record(kw_only=True)
class RemoteSizes:
    """Payload sizes in bytes, of the newest jobs."""

    p50: int
    p95: int
    largest: int
    looked_at: int


@record(kw_only=True)
class RemoteFlow:
    """How a task, a lane or all together fare."""

    jobs: Mapping[JobState, int]
    oldest_pending_seconds: float
    in_per_second: float
    out_per_second: float
    drain_seconds: float | None = None
    """None while pending jobs do not become fewer."""
    wait_ms: RemoteTimes
    run_ms: RemoteTimes
    error_rate: float
    retry_success_rate: float | None = None
    payload_bytes: RemoteSizes | None = None


@record(kw_only=True)
class RemotePool:
    """Slots of the workers that are online, for one lane or with `*` for every lane."""

    lane: str
    slots: int
    busy: int
    use: float


@record(kw_only=True)
class RemoteBreakerTrips:
    """A breaker, and how often it opened within 24 hours."""

    name: str
    state: BreakerState
    trips: int


@record(kw_only=True)
class RemotePriorities:
    """Pending jobs by priority."""

    jobs: Mapping[int, int]
    is_exact: bool = True


@record(kw_only=True)
class RemoteSummary:
    """The queue at one moment, by task and by lane."""

    at: datetime
    since: datetime
    """From when on rates and percentiles count."""
    total: RemoteFlow
    tasks: Mapping[str, RemoteFlow]
    lanes: Mapping[str, RemoteFlow]
    left_out: int = 0
    priorities: RemotePriorities
    pools: tuple[RemotePool, ...]
    workers: int
    breakers: tuple[RemoteBreakerTrips, ...]
    lost_leases: int
    schedule_lateness_seconds: float
    alerts: int


@record(kw_only=True)
class RemotePoint:
    """The runs that ended within one step."""

    at: datetime
    completed: int
    failed: int
    cancelled: int
    out_per_second: float
    error_rate: float
    wait_ms: RemoteTimes
    run_ms: RemoteTimes


@record(kw_only=True)
class RemoteSeries:
    """Runs over time; every step is there."""

    task: str | None = None
    lane: str | None = None
    from_at: Annotated[datetime, Field(validation_alias="from")]
    to: datetime
    step_seconds: float
    points: tuple[RemotePoint, ...]


def summary() -> Ask[RemoteSummary]:
    """Read how every task and lane fares: depth now, rates and percentiles of the last minutes."""
    return get(f"{API}/metrics/summary", as_one(RemoteSummary))


def series(
    *,
    task: str | None = None,
    lane: str | None = None,
    from_at: datetime | None = None,
    to_at: datetime | None = None,
    step: Duration = "1m",
) -> Ask[RemoteSeries]:
    """Read the runs that ended over time; left out, the last hour."""
    query = {"task": task, "lane": lane, "from": from_at, "to": to_at, "step": f"{seconds(step, 'step'):g}s"}
    return get(f"{API}/metrics", as_one(RemoteSeries), query)


def scale(lane: str, *, slots: int | None = None, within: Duration = "1m") -> Ask[LaneScale]:
    """Read how many workers a lane wants; `*` is every lane but `pull`."""
    return get(f"{API}/scale/{word(lane)}", as_one(LaneScale), {"slots": slots, "within": f"{seconds(within, 'within'):g}s"})
