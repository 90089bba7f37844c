"""Counts of times by size: small, mergeable, and good for percentiles to within one step of the scale."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import field

from windlass.core.record import record
from windlass.errors import InvalidInput

# The tenth-decade series of preferred numbers (Renard's R10): each step is about a quarter more than the last.
_STEPS = (1.0, 1.25, 1.6, 2.0, 2.5, 3.15, 4.0, 5.0, 6.3, 8.0)
_DECADES = 8
BOUNDS: tuple[float, ...] = (*(step * 10.0**decade for decade in range(_DECADES) for step in _STEPS), 10.0**_DECADES)
"""Where each bucket but the first begins, in milliseconds: from one millisecond to a bit more than a day."""
BUCKETS = len(BOUNDS) + 1
_MAX_PERCENT = 100


def bucket(ms: float) -> int:
    """Return which bucket a time belongs to: how many bounds it has reached."""
    return bisect_right(BOUNDS, ms)


def edges(number: int) -> tuple[float, float]:
    """Return where a bucket begins and ends; the last one, which has no end, ends where it begins."""
    low = BOUNDS[number - 1] if number else 0.0
    return low, BOUNDS[number] if number < len(BOUNDS) else low


@record
class Histogram:
    """How many times fell into each bucket; empty buckets are left out."""

    counts: Mapping[int, int] = field(default_factory=dict)

    @property
    def total(self) -> int:
        """How many times were counted."""
        return sum(self.counts.values())

    def percentile(self, percent: float) -> float | None:
        """Estimate the time that `percent` of all times do not exceed, in milliseconds; None when nothing was counted.

        Inside a bucket times are taken to lie evenly, so the answer is in the same bucket as the true one.
        """
        if not 0 <= percent <= _MAX_PERCENT:
            raise InvalidInput("percent", percent, "must be from 0 to 100")
        rank = max(1.0, self.total * percent / 100)
        passed = 0
        for number in sorted(self.counts):
            inside = self.counts[number]
            if passed + inside >= rank:
                low, high = edges(number)
                return low + (high - low) * (rank - passed) / inside
            passed += inside
        return None


def merge(histograms: Iterable[Histogram]) -> Histogram:
    """Add histograms up: the order does not matter and nothing is lost."""
    counts: dict[int, int] = {}
    for histogram in histograms:
        for number, runs in histogram.counts.items():
            counts[number] = counts.get(number, 0) + runs
    return Histogram({number: runs for number, runs in sorted(counts.items()) if runs})
