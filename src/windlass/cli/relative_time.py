"""Instants as people read them at a terminal: `3 min ago`, `in 2 h`."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_NOW = timedelta(seconds=1)
# Up to how long each unit is used: two of the next one are clearer than 120 of this one.
_UNITS = (
    ("s", timedelta(seconds=1), timedelta(seconds=90)),
    ("min", timedelta(minutes=1), timedelta(minutes=90)),
    ("h", timedelta(hours=1), timedelta(hours=36)),
    ("d", timedelta(days=1), timedelta(days=60)),
)


def relative(at: datetime, now: datetime) -> str:
    """Write how long ago an instant was, or how far ahead it is; beyond two months, its date."""
    distance = abs(at - now)
    if distance < _NOW:
        return "now"
    for unit, size, most in _UNITS:
        if distance < most:
            count = f"{round(distance / size)} {unit}"
            return f"in {count}" if at > now else f"{count} ago"
    return f"{at.astimezone(UTC):%Y-%m-%d}"


def now_here() -> datetime:
    """Return the time of this machine, to be compared with what the database wrote; nothing is decided by it."""
    return datetime.now(UTC)  # noqa: TID251 - shown to the person whose clock it is
