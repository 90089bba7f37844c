"""The interval scheduler's form of when a job runs: so many minutes, hours or days, or five cron fields, or now."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, NamedTuple

from windlass.core.cadence import Every, OnExhausted, Recurrence, parse_cadence
from windlass.core.checks import check_range
from windlass.core.filter import StateFilter
from windlass.core.job import JobState, WaitReason
from windlass.core.record import record
from windlass.errors import InvalidInput

UNITS = {"minutes": timedelta(minutes=1), "hours": timedelta(hours=1), "days": timedelta(days=1)}
# A hundred years of minutes: no unit may exceed what a cadence can be.
_MOST = 52_596_000


@record(kw_only=True)
class IntervalForm:
    """The fields of the interval scheduler's body that set when; absent ones are None."""

    interval_minutes: int | None = None
    interval_type: str | None = None
    schedule_time: str | None = None
    schedule_enabled: bool | None = None
    start_at: datetime | None = None
    fixed_rate: bool = False
    timezone: str = "UTC"

    def recurrence(self) -> Recurrence | None:
        """Return the rule, or None for a job that runs once, now.

        The interval wins over schedule_time. Either makes a recurring job unless schedule_enabled is false; with neither,
        schedule_enabled must not be true.
        """
        every = None if self.interval_minutes is None else interval(self.interval_minutes, self.interval_type)
        cron = parse_cadence(self.schedule_time) if self.schedule_time else None
        cadence = every or cron
        if cadence is None and self.interval_type is not None:
            raise InvalidInput("interval_type", self.interval_type, "goes with interval_minutes")
        if cadence is None and self.schedule_enabled:
            raise InvalidInput("schedule_enabled", self.schedule_enabled, "needs interval_minutes or schedule_time")
        if cadence is None or self.schedule_enabled is False:
            return None
        return Recurrence(
            cadence=cadence,
            timezone=self.timezone,
            fixed_rate=self.fixed_rate,
            start_at=self.start_at,
            on_exhausted=OnExhausted.FAIL,
            unit=None if every is None else self.interval_type or "minutes",
        )


class IntervalChange(NamedTuple):
    """An edit of an interval; what is None stays."""

    number: int | None
    unit: str | None

    def fields(self, rule: Recurrence) -> dict[str, Any]:
        """Return the fields of the rule that has this interval."""
        number, unit = shown_interval(rule) or (None, None)
        if self.number is None and number is None:
            raise InvalidInput("interval_type", self.unit, "goes with interval_minutes")
        unit = self.unit or unit or "minutes"
        return {"cadence": interval(self.number or number or 0, unit), "unit": unit}


def shown_interval(rule: Recurrence | None) -> tuple[int, str] | None:
    """Return a rule's interval as it was given, or in the largest unit that fits; None when it has none of whole minutes."""
    if rule is None or not isinstance(rule.cadence, Every):
        return None
    units = (rule.unit,) if rule.unit in UNITS else tuple(reversed(UNITS))
    for unit in units:
        number, rest = divmod(rule.cadence.period, UNITS[unit])
        if not rest:
            return number, unit
    return None


def interval(number: int, unit: str | None = None) -> Every:
    """Read the interval scheduler's interval: a number of minutes, hours or days; minutes if no unit is given."""
    if unit is not None and unit not in UNITS:
        raise InvalidInput("interval_type", unit, f"use one of {', '.join(UNITS)}")
    length = UNITS[unit or "minutes"]
    check_range("interval_minutes", number, 1, _MOST * UNITS["minutes"] // length)
    return Every(number * length)


FRESH = frozenset({WaitReason.NEW, WaitReason.OPERATOR})
"""Why a pending job waits that has not run since it was made or started afresh."""
_OTHERS = frozenset(WaitReason) - FRESH


def status_of(state: JobState, reason: WaitReason | None) -> JobState:
    """Return the status of a job in this state for this reason."""
    return JobState.SCHEDULED if state is JobState.PENDING and reason in _OTHERS else state


def states_of(status: JobState) -> tuple[StateFilter, ...]:
    """Return which jobs have this status."""
    match status:
        case JobState.PENDING:
            return (StateFilter(JobState.PENDING, FRESH),)
        case JobState.SCHEDULED:
            return (StateFilter(JobState.SCHEDULED), StateFilter(JobState.PENDING, _OTHERS))
        case _:
            return (StateFilter(status),)
