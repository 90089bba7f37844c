"""The ranges of time that pages with charts show: from when to when, and in which steps."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Annotated, NamedTuple

from fastapi import Query
from pydantic import BeforeValidator

from windlass.core.cadence import EPOCH
from windlass.core.durations import format_duration, parse_duration
from windlass.core.series import KEEP_MINUTES, SeriesQuery
from windlass.errors import InvalidInput
from windlass.web.fields import Instant

QUICK = ("1h", "6h", "24h", "7d")
MOST_STEPS = 240
"""How many steps a page draws: their numbers are in it."""
_MINUTE = timedelta(minutes=1)
_STEPS = tuple(timedelta(minutes=minutes) for minutes in (1, 2, 5, 10, 15, 30, 60, 120, 180, 360))
_GOOD = 100
_LOCAL = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]+)?)?")


def _moment(text: object) -> object:
    """Take an empty field for one that was left out, and a time without a zone for UTC, which all pages show."""
    if isinstance(text, str) and _LOCAL.fullmatch(text):
        return f"{text.replace(' ', 'T')}Z"
    return text or None


Moment = Annotated[Instant | None, BeforeValidator(_moment), Query()]
FromMoment = Annotated[Instant | None, BeforeValidator(_moment), Query(alias="from")]
Length = Annotated[str | None, Query(max_length=40)]


class Range(NamedTuple):
    """A stretch of time in steps; `quick` is its name where it ends now."""

    from_at: datetime
    to_at: datetime
    step: timedelta
    quick: str = ""

    @property
    def length(self) -> timedelta:
        """How long it is."""
        return self.to_at - self.from_at

    @property
    def before(self) -> Range:
        """The range of the same length that ends where this one begins."""
        return Range(self.from_at - self.length, self.from_at, self.step)


def chosen_range(
    now: datetime,
    *,
    from_at: datetime | None = None,
    to_at: datetime | None = None,
    step: str | None = None,
    quick: str | None = None,
) -> Range:
    """Return the range that an address asks for; raises InvalidInput naming the field."""
    if quick and from_at is None and to_at is None:
        length = parse_duration(quick, field="range")
        if not _MINUTE <= length <= KEEP_MINUTES:
            raise InvalidInput("range", quick, f"must be 1m to {KEEP_MINUTES.days}d: minutes are not kept for longer")
        width = parse_duration(step, field="step") if step else _fitting(length)
        if width <= timedelta():
            raise InvalidInput("step", step, "must be whole minutes, as in 1m or 1h")
        # Whole steps, of which the last one goes on.
        end = now + (EPOCH - now) % width
        begin, name = end - length, quick
    else:
        end = (now if to_at is None else to_at).astimezone(UTC)
        begin, name = (end - timedelta(hours=1) if from_at is None else from_at).astimezone(UTC), ""
        width = parse_duration(step, field="step") if step else _fitting(end - begin)
    if width >= _MINUTE and MOST_STEPS * width < end - begin <= KEEP_MINUTES:
        least = next((one for one in _STEPS if (end - begin) / one <= MOST_STEPS), _STEPS[-1])
        limit = f"makes more than {MOST_STEPS} points; use at least {format_duration(least)}"
        raise InvalidInput("step", format_duration(width), limit)
    # Refuses an end before its beginning, what is not kept any more, and steps that are none.
    SeriesQuery(from_at=begin, to_at=end, step=width)
    return Range(begin, end, width, name)


def _fitting(length: timedelta) -> timedelta:
    return next((one for one in _STEPS if length / one <= _GOOD), _STEPS[-1])
