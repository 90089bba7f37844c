"""Runs over time: one point for each step between two moments."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from windlass.core.cadence import EPOCH
from windlass.core.checks import check_instant, check_text, check_wait
from windlass.core.durations import format_duration
from windlass.core.insights import Times, error_rate, times
from windlass.core.job import MAX_NAME
from windlass.core.record import record
from windlass.core.runs import Minute, span
from windlass.errors import InvalidInput

KEEP_MINUTES = timedelta(days=7)
"""How long minutes are kept."""
MOST_POINTS = 1_000
_MINUTE = timedelta(minutes=1)
_HOUR = timedelta(hours=1)


@record(kw_only=True)
class SeriesQuery:
    """Which runs, between when and when, in which steps; the end is left open."""

    from_at: datetime
    to_at: datetime
    step: timedelta = _MINUTE
    task: str | None = None
    lane: str | None = None

    def __post_init__(self) -> None:
        """Refuse what has no points, too many, or points that are no whole minutes."""
        for name in ("task", "lane"):
            if getattr(self, name) is not None:
                check_text(name, getattr(self, name), MAX_NAME)
        check_instant("from", self.from_at)
        check_instant("to", self.to_at)
        check_wait("step", self.step, least=_MINUTE)
        if self.step % _MINUTE:
            raise InvalidInput("step", format_duration(self.step), "must be whole minutes, as in 1m or 1h")
        if self.from_at >= self.to_at:
            raise InvalidInput("from", self.from_at.isoformat(), f"must be before to, which is {self.to_at.isoformat()}")
        if self.to_at - self.from_at > KEEP_MINUTES:
            limit = f"must be at most {KEEP_MINUTES.days} days before to: minutes are not kept for longer"
            raise InvalidInput("from", self.from_at.isoformat(), limit)
        if (self.last - self.first) / self.step > MOST_POINTS:
            least = -(-(self.last - self.first) // MOST_POINTS // _MINUTE) * _MINUTE
            raise InvalidInput(
                "step", format_duration(self.step), f"makes more than {MOST_POINTS} points; use at least {format_duration(least)}"
            )

    @property
    def first(self) -> datetime:
        """When the first point begins: steps begin at whole multiples of themselves, so that two queries have the same."""
        return self.from_at - (self.from_at - EPOCH) % self.step

    @property
    def last(self) -> datetime:
        """When the last point ends."""
        return self.to_at + (EPOCH - self.to_at) % self.step


def series_query(
    now: datetime,
    *,
    from_at: datetime | None = None,
    to_at: datetime | None = None,
    step: timedelta = _MINUTE,
    task: str | None = None,
    lane: str | None = None,
) -> SeriesQuery:
    """Describe a series; left out, it ends now and begins an hour before its end."""
    end = now if to_at is None else to_at
    begin = end - _HOUR if from_at is None else from_at
    return SeriesQuery(from_at=begin, to_at=end, step=step, task=task, lane=lane)


@record(kw_only=True)
class Point:
    """The runs that ended within one step; released and snoozed ones are left out."""

    at: datetime
    completed: int
    failed: int
    cancelled: int
    out_per_second: float
    error_rate: float
    wait: Times
    run: Times


@record
class Series:
    """Every step between two moments, also those in which nothing ended."""

    query: SeriesQuery
    points: Sequence[Point]
    whole: Minute
    """All steps added up, with the histograms of their times."""


def series(query: SeriesQuery, minutes: Iterable[Minute]) -> Series:
    """Add minutes up to the steps they belong to; a minute may come in parts."""
    parts: dict[int, list[Minute]] = {}
    for one in minutes:
        parts.setdefault((one.minute - query.first) // query.step, []).append(one)
    # Each part is added once: what is added up for the steps is less than what was read.
    steps = {place: whole for place, found in parts.items() if (whole := span(found)) is not None}
    number = (query.last - query.first) // query.step
    points = [
        point(query.first + place * query.step, query.step, [steps[place]] if place in steps else []) for place in range(number)
    ]
    return Series(query, points, span(list(steps.values())) or Minute(query.first))


def point(at: datetime, step: timedelta, minutes: Sequence[Minute]) -> Point:
    """Add up the minutes of one step."""
    whole = minutes[0] if len(minutes) == 1 else span(minutes) or Minute(at)
    return Point(
        at=at,
        completed=whole.completed,
        failed=whole.failed,
        cancelled=whole.cancelled,
        out_per_second=whole.finished / step.total_seconds(),
        error_rate=error_rate(whole.completed, whole.failed),
        wait=times(whole.waits, whole.wait_ms, whole.finished),
        run=times(whole.runs, whole.duration_ms, whole.finished),
    )
