"""Circuit breakers as the HTTP API shows them."""

from __future__ import annotations

from datetime import datetime

from windlass.core.breaker import BreakerReason, BreakerState
from windlass.wire import answer


@answer
class BreakerOut:
    """A breaker that has left closed at some time."""

    name: str
    state: BreakerState
    failures: int
    """What it opened for; probes that failed are added until it closes."""
    successes: int
    """How often a probe has closed it."""
    threshold: int
    """How many failures in a row open it."""
    open_seconds: float
    """How long it stays open before it is tried again."""
    last_failure_at: datetime | None = None
    opened_at: datetime | None = None
    probe_at: datetime | None = None
    """When it is tried again; null while it is open for good."""
    half_opened_at: datetime | None = None
    probe_job_id: int | None = None
    """The job it is being tried with."""
    is_forced: bool
    """Whether an operator opened it."""
    updated_at: datetime


@answer
class BreakerEventOut:
    """One change of a breaker."""

    id: int
    state: BreakerState
    reason: BreakerReason
    job_id: int | None = None
    at: datetime
