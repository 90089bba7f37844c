"""Lengths of time as people write them: `90`, `1.5h`, `1h30m`, `250ms`."""

from __future__ import annotations

import math
import re
from datetime import timedelta

from windlass.errors import InvalidInput

Duration = str | float | timedelta
"""Seconds, or text as in `90s` or `1h30m`."""
MAX = timedelta(days=36_525)

# Far beyond any sensible duration, and small enough that exact integer arithmetic on the digits stays cheap.
_LONGEST_TEXT = 100
_SHOWABLE = 10**30
_MICROSECOND = timedelta(microseconds=1)
_MILLISECOND = timedelta(milliseconds=1)
_SECOND = timedelta(seconds=1)
_SECOND_NS = 1_000_000_000
_UNITS_NS = {
    "ns": 1,
    "us": 1_000,
    "\u00b5s": 1_000,  # the micro sign, and next the Greek letter that keyboards type for it
    "\u03bcs": 1_000,
    "ms": 1_000_000,
    "s": _SECOND_NS,
    "m": 60 * _SECOND_NS,
    "h": 3_600 * _SECOND_NS,
    "d": 86_400 * _SECOND_NS,
}
_PART = re.compile(r"([0-9]*)(?:\.([0-9]*))?([^0-9.\s]*)")
_WORDS = (("d", timedelta(days=1)), ("h", timedelta(hours=1)), ("min", timedelta(minutes=1)))
_HINT = "write for example 90, 1.5h, 1h30m or 250ms"


def parse_duration(text: str | timedelta | float, *, field: str = "duration") -> timedelta:
    """Read a duration of 0 to `MAX`; a plain number counts seconds, and what is finer than a microsecond rounds half up."""
    if isinstance(text, str):
        microseconds = _read_text(text, field)
    elif isinstance(text, timedelta):
        microseconds = text // _MICROSECOND
    else:
        microseconds = _read_number(text, field)
    # Python refuses to print an int of thousands of digits, and an error has to show its value.
    value = text if not isinstance(text, int) or abs(text) < _SHOWABLE else f"an integer of {text.bit_length()} bits"
    if microseconds < 0:
        raise InvalidInput(field, value, "a duration cannot be negative")
    # Compared as numbers: a timedelta of this many microseconds may overflow before it can be refused.
    if microseconds > MAX // _MICROSECOND:
        raise InvalidInput(field, value, "a duration cannot be longer than 100 years")
    return timedelta(microseconds=microseconds)


def format_duration(duration: timedelta) -> str:
    """Write a duration so that `parse_duration` reads back the same one, as long as it is not negative."""
    if duration < timedelta():
        return f"-{format_duration(-duration)}"
    microseconds = duration // _MICROSECOND
    if timedelta() < duration < _MILLISECOND:
        return f"{microseconds}us"
    if timedelta() < duration < _SECOND:
        return f"{_decimal(microseconds, 3)}ms"
    minutes, rest = divmod(microseconds, 60_000_000)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    text = "".join(f"{count}{unit}" for count, unit in ((days, "d"), (hours, "h"), (minutes, "m")) if count)
    return f"{text}{_decimal(rest, 6)}s" if rest or not text else text


def in_words(duration: timedelta) -> str:
    """Write a duration as people do: `30 s`, `1 h 30 min`, `250 ms`."""
    if duration < _SECOND:
        return f"{duration / _MILLISECOND:g} ms"
    parts: list[str] = []
    rest = duration
    for unit, size in _WORDS:
        count, rest = divmod(rest, size)
        if count:
            parts.append(f"{count} {unit}")
    if rest:
        parts.append(f"{round(rest / _SECOND, 3):g} s")
    return " ".join(parts)


def _read_text(text: str, field: str) -> int:
    if len(text) > _LONGEST_TEXT:
        raise InvalidInput(field, text, f"a duration has at most {_LONGEST_TEXT} characters")
    stripped = text.strip()
    if stripped.startswith("-"):
        raise InvalidInput(field, text, "a duration cannot be negative")
    if not stripped:
        raise InvalidInput(field, text, f"a duration cannot be empty; {_HINT}")
    try:
        scaled = _scaled_ns(stripped)
    except _BadPartError as bad:
        raise InvalidInput(field, text, f"{bad}; {_HINT}") from None
    return _half_up(scaled, 1_000 * 10**_LONGEST_TEXT)


def _scaled_ns(text: str) -> int:
    """Sum the parts exactly, in nanoseconds times 10 ** `_LONGEST_TEXT`, since no part has more decimals than that."""
    total = position = 0
    while position < len(text):
        match = _PART.match(text, position)
        if match is None or match.end() == position:
            raise _BadPartError(text[position:], position, "is not a number with a unit")
        whole, fraction, unit = match[1], match[2] or "", match[3]
        if not whole and not fraction:
            raise _BadPartError(match[0], position, "has no number")
        if not unit and match.span() != (0, len(text)):
            raise _BadPartError(match[0], position, "has no unit")
        if unit and unit not in _UNITS_NS:
            raise _BadPartError(match[0], position, f"has an unknown unit (known: {' '.join(_UNITS_NS)})")
        total += int(whole + fraction) * _UNITS_NS[unit or "s"] * 10 ** (_LONGEST_TEXT - len(fraction))
        position = match.end()
    return total


def _read_number(seconds: float, field: str) -> int:
    # True is an int to Python; as a duration it is a slip.
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        raise InvalidInput(field, seconds, f"a duration is text, a number of seconds or a timedelta; {_HINT}")
    if isinstance(seconds, float) and not math.isfinite(seconds):
        raise InvalidInput(field, seconds, "a duration must be a finite number of seconds")
    numerator, denominator = seconds.as_integer_ratio()
    return _half_up(numerator * 1_000_000, denominator)


def _half_up(numerator: int, denominator: int) -> int:
    return (2 * numerator + denominator) // (2 * denominator)


def _decimal(value: int, places: int) -> str:
    whole, fraction = divmod(value, 10**places)
    return f"{whole}.{fraction:0{places}d}".rstrip("0") if fraction else str(whole)


class _BadPartError(Exception):
    """A part of a duration text cannot be read."""

    def __init__(self, part: str, position: int, reason: str) -> None:
        super().__init__(f"{part!r} at character {position + 1} {reason}")
