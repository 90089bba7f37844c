"""Queue statistics, as the HTTP API shows them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from windlass.core.breaker import BreakerState
from windlass.core.job import JobState
from windlass.wire import answer


@answer
class TimesOut:
    """Percentiles and average in milliseconds; null where no run ended. A percentile is at most a quarter off."""

    p50: float | None = None
    p95: float | None = None
    p99: float | None = None
    average: float | None = None


@answer
class SizesOut:
    """Payload sizes in bytes, of at most the 500 newest jobs of the queue."""

    p50: int
    p95: int
    largest: int
    looked_at: int


@answer
class FlowOut:
    """Statistics of a task, of a lane or of all jobs."""

    jobs: Mapping[JobState, int]
    oldest_pending_seconds: float
    """How long the pending job that has been due the longest has waited; 0 where none waits."""
    in_per_second: float
    """Jobs that came in; estimated from the newest 1,000 where more came within the window."""
    out_per_second: float
    """Runs that ended."""
    drain_seconds: float | None = None
    """How long the pending jobs last at these rates; 0 where none waits, null while they do not become fewer."""
    wait_ms: TimesOut
    run_ms: TimesOut
    error_rate: float
    """Failed runs among those that completed or failed within the window; 0 where none did."""
    retry_success_rate: float | None = None
    """Of jobs that were tried again and have ended, the part that completed; from the newest 1,000 that ran more than once."""
    payload_bytes: SizesOut | None = None


@answer
class PoolOut:
    """The slots that workers which are online have for one lane, or with `*` for every lane."""

    lane: str
    slots: int
    busy: int
    use: float


@answer
class BreakerTripsOut:
    """A breaker that has left closed at some time."""

    name: str
    state: BreakerState
    trips: int
    """How often it opened within 24 hours, as far as the newest 1,000 changes of all breakers show it."""


@answer
class PrioritiesOut:
    """Pending jobs by priority."""

    jobs: Mapping[int, int]
    is_exact: bool
    """Otherwise only 2,000 of them were looked at."""


@answer
class SummaryOut:
    """The queue at one moment, by task and by lane; rates and percentiles are those of the window."""

    at: datetime
    since: datetime
    """Where the window begins: five whole minutes before the one that goes on."""
    total: FlowOut
    tasks: Mapping[str, FlowOut]
    lanes: Mapping[str, FlowOut]
    left_out: int
    """How many tasks and lanes are not listed: there are at most 500 of each."""
    priorities: PrioritiesOut
    pools: tuple[PoolOut, ...]
    workers: int
    """How many are online."""
    breakers: tuple[BreakerTripsOut, ...]
    lost_leases: int
    """Since the beginning."""
    schedule_lateness_seconds: float
    """How overdue the most overdue schedule or delayed job is; 0 where none is."""
    alerts: int


@answer
class PointOut:
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
