"""Reads the jobs that APScheduler 3 has pickled into its store, without running anything of theirs.

A pickle may name any function and have it called, so every name in it is one of a few here, or refused. Triggers become plain
objects that have the attributes of theirs; APScheduler itself is not needed.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time, timedelta, timezone
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from windlass.errors import InvalidInput

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_POSITIONS = ("1st", "2nd", "3rd", "4th", "5th", "last")
_TRIGGERS = "apscheduler.triggers."


class StoredJob(NamedTuple):
    """A job with the names that APScheduler's own has."""

    id: str
    func_ref: Any
    trigger: Any
    args: Any
    kwargs: Any
    next_run_time: Any


class _Plain:
    """Has the attributes that were pickled."""

    def __setstate__(self, state: Any) -> None:
        """Take them; APScheduler 3.0 has pickled a pair with them at its end."""
        self.__dict__.update(state[1] if isinstance(state, tuple) else state)


class _Trigger(_Plain):
    def __str__(self) -> str:
        return type(self).__name__


class _Field(_Plain):
    expressions: list[_Every]

    def __str__(self) -> str:
        return ",".join(map(str, self.expressions))


class _Every(_Plain):
    step: int | None

    def __str__(self) -> str:
        return f"*/{self.step}" if self.step else "*"


class _Range(_Every):
    first: int
    last: int | None

    def __str__(self) -> str:
        span = self.name(self.first) if self.last in {None, self.first} else f"{self.name(self.first)}-{self.name(self.last)}"
        return f"{span}/{self.step}" if self.step else span

    def name(self, number: int | None) -> str:
        return str(number)


class _Months(_Range):
    def name(self, number: int | None) -> str:
        return _MONTHS[(number or 1) - 1]


class _Weekdays(_Range):
    def name(self, number: int | None) -> str:
        return _WEEKDAYS[number or 0]


class _Position(_Every):
    option_num: int
    weekday: int

    def __str__(self) -> str:
        return f"{_POSITIONS[self.option_num]} {_WEEKDAYS[self.weekday]}"


class _Last(_Every):
    def __str__(self) -> str:
        return "last"


def _zone_function(owner: Any, name: str) -> Any:
    """Stand for `getattr`: a zone is pickled as a call of the function that it finds by it."""
    if (owner, name) != (ZoneInfo, "_unpickle"):
        raise pickle.UnpicklingError("it looks for something other than a time zone")
    return ZoneInfo._unpickle  # type: ignore[attr-defined]  # noqa: SLF001 - as it was pickled


def _pytz_zone(name: str, *_: object) -> ZoneInfo:
    return ZoneInfo(name)


def _pytz_utc() -> timezone:
    return UTC


_PARTS: Mapping[str, type] = {
    "AllExpression": _Every,
    "RangeExpression": _Range,
    "MonthRangeExpression": _Months,
    "WeekdayRangeExpression": _Weekdays,
    "WeekdayPositionExpression": _Position,
    "LastDayOfMonthExpression": _Last,
}
_OTHERS: Mapping[tuple[str, str], Callable[..., Any]] = {
    ("datetime", "date"): date,
    ("datetime", "datetime"): datetime,
    ("datetime", "time"): time,
    ("datetime", "timedelta"): timedelta,
    ("datetime", "timezone"): timezone,
    ("zoneinfo", "ZoneInfo"): ZoneInfo,
    ("builtins", "getattr"): _zone_function,
    ("pytz", "_UTC"): _pytz_utc,
    ("pytz", "_p"): _pytz_zone,
}


class _Unpickler(pickle.Unpickler):
    """Finds what a job may be made of, and nothing else."""

    def find_class(self, module: str, name: str) -> Any:
        if module.startswith(_TRIGGERS) and name.isidentifier():
            base = _PARTS.get(name) or (_Trigger if name.endswith("Trigger") else _Field if name.endswith("Field") else None)
            if base is not None:
                return type(name, (base,), {})
        found = _OTHERS.get((module, name))
        if found is None:
            raise pickle.UnpicklingError(f"it has a {module}.{name} in it, which is not read from a pickle")
        return found


def stored_job(job_id: str, pickled: bytes) -> StoredJob:
    """Read a job's row; raises InvalidInput where there is anything else in it."""
    try:
        state = _Unpickler(io.BytesIO(pickled)).load()
        return StoredJob(job_id, *(state[name] for name in ("func", "trigger", "args", "kwargs", "next_run_time")))
    except (pickle.UnpicklingError, ArithmeticError, AttributeError, EOFError, LookupError, TypeError, ValueError) as error:
        raise InvalidInput("job_state", f"{len(pickled)} bytes", f"cannot be read: {error}") from None
