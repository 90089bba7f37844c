"""The database's time, carried on by this machine's steady counter."""

from __future__ import annotations

import time
from datetime import datetime, timedelta


class DatabaseClock:
    """Never looks at the machine's wall clock: it may differ from the database's, and it may jump."""

    def __init__(self, at: datetime) -> None:
        """Start from a time the database has just given."""
        self.monotonic = time.monotonic
        self.note(at)

    def note(self, at: datetime) -> None:
        """Learn the time from an answer that has just come."""
        self._at = at
        self._noted = time.monotonic()

    def now(self) -> datetime:
        """Say what time it is at the database, as far as this process knows."""
        return self._at + timedelta(0, time.monotonic() - self._noted)
