"""A clock that moves only when it is set."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

from windlass.core.cadence import EPOCH
from windlass.core.checks import check_instant


class FakeClock:
    """Database time for tests: advance it instead of waiting."""

    def __init__(self, start: datetime = datetime(2026, 1, 15, 10, 30, tzinfo=UTC)) -> None:
        """Start at a fixed moment."""
        check_instant("start", start)
        self._now = start
        self.started_at = start
        # Timeouts count real seconds: a handler that hangs does not move the clock.
        self.monotonic = time.monotonic

    def now(self) -> datetime:
        """Read the time."""
        return self._now

    def now_us(self) -> int:
        """Read the time in microseconds since the epoch."""
        return (self._now - EPOCH) // timedelta(microseconds=1)

    def note(self, at: datetime) -> None:
        """Do nothing: the time is sent to the database, and not read from it."""

    def advance(self, **by: float) -> datetime:
        """Move on by a `timedelta` given in keywords, such as `seconds=31`."""
        self._now += timedelta(**by)
        return self._now

    def move_to(self, at: datetime) -> datetime:
        """Move to an instant, such as the next midnight."""
        check_instant("at", at)
        self._now = at
        return self._now
