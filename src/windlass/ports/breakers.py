"""The verbs of circuit breakers."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Protocol

from windlass.core.breaker import Admission, Breaker, BreakerEvent, BreakerSpec, BreakerState
from windlass.core.tally import Tally


class Breakers(Protocol):
    """A breaker is closed until failures in a row open it; then one caller at a time over the fleet may try."""

    async def admit(self, spec: BreakerSpec, *, job_id: int | None = None, token: int | None = None) -> Admission:
        """Ask to go ahead; one that is let through as the probe holds the permit until it records or its lease ends."""
        ...

    async def record(
        self, spec: BreakerSpec, *, succeeded: bool, failures: int = 0, job_id: int | None = None, token: int | None = None
    ) -> BreakerState:
        """Record a probe's result, before its job is finished, a success, or `failures` more of a row over all processes."""
        ...

    async def count_failures(self, name: str) -> int:
        """Count the failures in a row of a closed breaker, over all processes."""
        ...

    async def reset(self, name: str) -> Breaker | None:
        """Close a breaker, whoever is trying it; nothing when it has never left closed."""
        ...

    async def force_open(self, name: str, for_: timedelta | None = None) -> Breaker:
        """Open a breaker, whoever is trying it: for a while, or until it is reset."""
        ...

    async def get(self, name: str) -> Breaker | None:
        """Read one; nothing when it has never left closed."""
        ...

    async def history(self, name: str, limit: int = ...) -> Sequence[BreakerEvent]:
        """Read the changes of one, newest first."""
        ...

    async def prune_events(self, keep: timedelta = ..., *, limit: int = ...) -> int:
        """Forget changes older than `keep`, but for the last of each; returns how many."""
        ...

    async def list(self, *, after: str = "", limit: int = ...) -> Sequence[Breaker]:
        """Read those that ever left closed, by name, page by page."""
        ...

    async def count(self) -> Tally:
        """Count them, up to a bound."""
        ...
