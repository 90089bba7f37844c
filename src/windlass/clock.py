"""The database's time, carried on by this machine's steady counter."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial

from windlass.core.cadence import EPOCH

_MICROSECOND = timedelta(microseconds=1)

steady: Callable[[], float]
"""Counts seconds that never go back and go on while the machine sleeps: a lease runs out in that time too."""

if sys.platform == "linux":
    steady = partial(time.clock_gettime, time.CLOCK_BOOTTIME)
elif sys.platform == "darwin":
    # Runs on in sleep there, unlike what Python's own monotonic clock reads.
    steady = partial(time.clock_gettime, time.CLOCK_MONOTONIC)
else:
    steady = time.monotonic


def machine_time() -> datetime:
    """Return what this machine's wall clock shows; only to be compared with the database's."""
    return datetime.now(UTC)  # noqa: TID251 - it is this clock that is looked at


class DatabaseClock:
    """Never looks at the machine's wall clock: it may differ from the database's, and it may jump."""

    def __init__(self, at: datetime) -> None:
        """Start from a time the database has just given."""
        self.monotonic = steady
        self.note(at)

    def note(self, at: datetime) -> None:
        """Learn the time from an answer that has just come."""
        self._at = at
        self._at_us = (at - EPOCH) // _MICROSECOND
        self._noted = steady()

    def now(self) -> datetime:
        """Return what time it is at the database, as far as this process knows."""
        return self._at + timedelta(0, steady() - self._noted)

    def now_us(self) -> int:
        """Return the same in microseconds since the epoch."""
        return self._at_us + int((steady() - self._noted) * 1_000_000)
