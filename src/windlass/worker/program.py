"""What a worker runs: an application's tasks and what belongs to them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from windlass.core.hooks import Hooks
from windlass.core.pool import DEFAULT_POOLS, FAST_LANE, PoolSpec, parse_pools
from windlass.core.record import record
from windlass.core.retry import PROFILES, Profile
from windlass.core.task import Registry

if TYPE_CHECKING:
    from windlass.otel import Tracing


@record(kw_only=True)
class WorkerOptions:
    """Settings of one worker process."""

    pools: tuple[PoolSpec, ...] = parse_pools(DEFAULT_POOLS)
    lease: timedelta = timedelta(seconds=20)
    poll_interval: timedelta = timedelta(seconds=1)
    prefetch: int = 20
    """How many jobs of a millisecond a pool holds ready; longer ones fewer, shorter ones more."""
    fast_timeout: timedelta = timedelta(minutes=2)
    timeout: timedelta = timedelta(minutes=20)
    grace: timedelta = timedelta(seconds=30)
    """How long running jobs may go on after the worker was asked to stop."""
    stop_grace: timedelta = timedelta(seconds=1)
    """How long a handler that was asked to stop may clean up before it is abandoned or killed."""
    most_lost_threads: int = 16
    """A process with more abandoned threads ends in order, for its supervisor to start anew."""

    def timeout_of(self, lane: str) -> timedelta:
        """Return how long a job of this lane may run when its task sets none."""
        return self.fast_timeout if lane == FAST_LANE else self.timeout


@record(kw_only=True)
class Program:
    """The code of one application, as far as a worker needs it."""

    registry: Registry
    hooks: Hooks = field(default_factory=Hooks)
    profiles: Mapping[str, Profile] = field(default_factory=lambda: PROFILES)
    """What jobs' rows leave open about retries."""
    state: Any = None
    """What handlers see as `ctx.state`."""
    target: str | None = None
    """Where a child process finds the application: `module:attribute`."""
    tracing: Tracing | None = None
