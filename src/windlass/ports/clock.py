"""Database time for code that is not in a transaction."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol


class Clock(Protocol):
    """The last time read from the database, plus what has passed here since."""

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
