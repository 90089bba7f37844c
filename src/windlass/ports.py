"""The seams with more than one implementation: the clock, and the work of a queue."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Protocol

from windlass.core.breaker import BreakerSpec, BreakerState
from windlass.core.item import Added
from windlass.core.job import Claimed, Held, JobState, Lease, Slices
from windlass.core.outcome import Ending, Run


class Clock(Protocol):
    """Database time for code that is not in a transaction: the last time read from it, plus what has passed here since."""

    def note(self, at: datetime) -> None:
        """Learn the time from an answer that has just come."""
        ...

    def now(self) -> datetime:
        """Return what time it is at the database, as far as this process knows."""
        ...

    def now_us(self) -> int:
        """Return the same in microseconds since the epoch."""
        ...

    def monotonic(self) -> float:
        """Count seconds that never go back."""
        ...


class Renewals(Protocol):
    """What keeps leases alive."""

    async def renew(self, leases: Sequence[tuple[int, int, datetime | None]], length: timedelta) -> Sequence[Held]:
        """Extend (id, token, started_at) leases and report which have started; what does not come back is lost."""
        ...

    async def record_logs(self, logs: Sequence[tuple[int, int, str]]) -> None:
        """Write what runs (id, token, lines) have logged so far, for pages that show it live."""
        ...


class Finds(Protocol):
    """Where runs put what they find."""

    async def add(self, job_id: int, token: int, found: Sequence[Mapping[str, Any]]) -> Added:
        """Add what a run has found; raises LeaseLost when it is no longer ours."""
        ...


class BreakerResults(Protocol):
    """Where the results of runs are recorded for breakers."""

    async def record(
        self,
        spec: BreakerSpec,
        *,
        succeeded: bool,
        failures: int = 0,
        job_id: int | None = None,
        token: int | None = None,
    ) -> BreakerState:
        """Record a probe's result, before its job is finished, a success, or `failures` more of a row over all processes."""
        ...

    async def count_failures(self, name: str) -> int:
        """Count the failures in a row of a closed breaker, over all processes."""
        ...


class Work(Protocol):
    """What a worker asks of the queue, wherever that is: in a database, or behind a server."""

    @property
    def items(self) -> Finds:
        """Where runs put what they find."""
        ...

    @property
    def breakers(self) -> BreakerResults:
        """Where the results of runs are recorded for breakers."""
        ...

    async def slices(self) -> Slices:
        """Find which lanes and tasks have pending work that no gate holds back."""
        ...

    async def claim(self, slices: Slices, limit: int, lease: Lease, *, started: bool = True) -> Sequence[Claimed]:
        """Take up to `limit` jobs in order; a suspect, whose last run ended in a lost lease, is never among them."""
        ...

    async def claim_suspects(self, slices: Slices, limit: int, lease: Lease) -> Sequence[Claimed]:
        """Take up to `limit` suspects in order, and start them; they are meant to run in quarantine."""
        ...

    async def claim_probe(self, slices: Slices, breaker: str, lease: Lease) -> Claimed | None:
        """Take one job of the slices that wait for this breaker, as its one probe over the fleet, and start it."""
        ...

    async def progress(
        self,
        job_id: int,
        token: int,
        *,
        count: int | None = None,
        cursor: str | None = None,
        message: str | None = None,
    ) -> None:
        """Note how far a run has come; raises LeaseLost when it is no longer ours."""
        ...

    async def finish(self, endings: Sequence[Ending]) -> Mapping[int, JobState]:
        """End runs; returns the accepted ones with the state each was left in. A missing one lost its lease."""
        ...

    async def stop(self, runs: Sequence[tuple[int, int, Run]]) -> Sequence[int]:
        """Report that cancelled runs (id, token, run) have stopped."""
        ...
