"""A cadence as an English text, for people who do not read cron."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from windlass.core.cadence import ByHandler, Cadence, Cron, Every

_MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
_DAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_SHORT_MONTHS = {name[:3].upper(): number for number, name in enumerate(_MONTHS, start=1)}
_SHORT_DAYS = {name[:3].upper(): number for number, name in enumerate(_DAYS[:7])}
_ORDINALS = ("first", "second", "third", "fourth", "fifth")
_UNITS = {unit: timedelta(**{f"{unit}s": 1}) for unit in ("day", "hour", "minute", "second")}


def describe(cadence: Cadence, timezone: str = "UTC") -> str:
    """Return when a cadence fires: `at 03:00 on Monday to Friday (Europe/Helsinki)`."""
    match cadence:
        case Every(period):
            return f"every {_period(period)}"
        case ByHandler(fallback):
            return f"when its handler says, else every {_period(fallback)}"
        case Cron():
            return f"{_cron(cadence.fields.upper().split())} ({timezone})"


def _period(period: timedelta) -> str:
    parts: list[str] = []
    rest = period
    for unit, length in _UNITS.items():
        number, rest = divmod(rest, length)
        if number:
            parts.append(unit if number == 1 and not rest and not parts else _many(number, unit))
    if rest:
        parts.append(f"{rest / timedelta(milliseconds=1):g} milliseconds")
    return " ".join(parts)


def _many(number: int, unit: str) -> str:
    return f"{number} {unit}" if number == 1 else f"{number} {unit}s"


def _cron(fields: list[str]) -> str:
    minute, hour, day, month, weekday = fields
    parts = [_time(minute, hour)]
    days = [] if day == "*" else [f"on {_days_of_month(day)}"]
    if weekday != "*":
        days.append(f"on {_list(weekday, _weekday)}")
    # Cron's own rule: with a star in either field both must fit, otherwise one is enough.
    parts.append((" and " if day.startswith("*") or weekday.startswith("*") else " or ").join(days))
    if month != "*":
        parts.append(f"in {_list(month, _month)}")
    return " ".join(filter(None, parts))


def _time(minute: str, hour: str) -> str:
    if minute.isdigit() and all(part.isdigit() for part in hour.split(",")):
        return f"at {_and([f'{int(part):02}:{int(minute):02}' for part in hour.split(',')])}"
    if hour == "*":
        return "every hour" if minute == "0" else _minutes(minute)
    if minute.isdigit() and hour.startswith("*/"):
        past = "" if minute == "0" else f" at {_many(int(minute), 'minute')} past"
        return f"every {_step(hour, 'hour')}{past}"
    return f"{_minutes(minute)}, {_hours(hour)}"


def _minutes(minute: str) -> str:
    if minute.startswith("*"):
        return "every minute" if minute == "*" else f"every {_step(minute, 'minute')}"
    return f"at minute {_list(minute, str)} of every hour" if "/" not in minute else f"at minutes {minute} of every hour"


def _hours(hour: str) -> str:
    if hour.startswith("*/"):
        return f"every {_step(hour, 'hour')}"
    return f"during hours {_list(hour, str)}" if "/" not in hour else f"during hours {hour}"


def _step(field: str, unit: str) -> str:
    return _many(int(field.removeprefix("*/")), unit) if field != "*/1" else unit


def _days_of_month(day: str) -> str:
    names = {"L": "the last day of the month", "LW": "the last weekday of the month"}
    if day in names:
        return names[day]
    if day.startswith("*/"):
        return f"every {_step(day, 'day')} of the month"
    return f"day {_list(day, str)} of the month"


def _weekday(text: str) -> str:
    if text.endswith("L"):
        return f"the last {_weekday(text[:-1])} of the month"
    name, _, number = text.partition("#")
    if number:
        return f"the {_ORDINALS[int(number) - 1]} {_weekday(name)} of the month"
    return _DAYS[_SHORT_DAYS.get(text, int(text) if text.isdigit() else 0)]


def _month(text: str) -> str:
    return _MONTHS[_SHORT_MONTHS.get(text, int(text) if text.isdigit() else 1) - 1]


def _list(field: str, name: Callable[[str], str]) -> str:
    parts = []
    for part in field.split(","):
        span, _, step = part.partition("/")
        first, _, last = span.partition("-")
        shown = "every one" if first == "*" else name(first) if not last else f"{name(first)} to {name(last)}"
        parts.append(f"{shown}, every {step}" if step else shown)
    return _and(parts)


def _and(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
