"""A clock that moves only when told."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta


class FakeClock:
    """Database time for tests: pass `clock.now()` to the verbs and advance it instead of waiting."""

    def __init__(self, start: datetime = datetime(2026, 1, 15, 10, 30, tzinfo=UTC)) -> None:
        """Start at a fixed moment."""
        self._now = start

    def now(self) -> datetime:
        """Read the time."""
        return self._now

    def advance(self, **by: float) -> datetime:
        """Move on by a `timedelta` given in keywords, such as `seconds=31`."""
        self._now += timedelta(**by)
        return self._now
