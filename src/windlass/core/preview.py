"""The next times of a rule, as people read them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import NamedTuple
from zoneinfo import ZoneInfo

from windlass.core.cadence import MICROSECOND, MISSED_AFTER, ByHandler, Cron, Every, Recurrence, zone_of
from windlass.core.checks import check_instant, check_range
from windlass.core.cron import matches

MOST = 1000
MOST_MISSED = 100


class Shift(StrEnum):
    """What a change of the clock does to a time."""

    MOVED = "moved"
    """The planned time does not exist on this day; it runs when the clock has jumped over it."""
    REPEATED = "repeated"
    """The clock shows this time twice."""


class Fire(NamedTuple):
    """One time of a rule: the instant, what the clock on the wall shows, and how far that is from UTC."""

    at: datetime
    local: datetime
    utc_offset: timedelta
    shift: Shift | None = None


def preview(rule: Recurrence, now: datetime, count: int = 10) -> list[Fire]:
    """List the next slots after `now`, as if each run took no time; fewer when the rule ends before."""
    check_instant("now", now)
    return fires_from(rule, rule.first(now), count)


def fires_from(rule: Recurrence, slot_at: datetime, count: int, *, completed_runs: int = 0) -> list[Fire]:
    """List `slot_at` and the slots that follow it, as if each run took no time; fewer when the rule ends before."""
    check_range("count", count, 1, MOST)
    zone = zone_of(rule.timezone)
    found: list[Fire] = []
    while len(found) < count and not rule.has_ended(slot_at, completed_runs + len(found)):
        found.append(_fire(rule, slot_at, zone))
        slot_at = _following(rule, slot_at)
    return found


def count_missed(rule: Recurrence, slot_at: datetime, now: datetime) -> int:
    """Count the slots from `slot_at` on that passed more than a minute ago; no further than 100."""
    late = now - MISSED_AFTER
    is_grid = isinstance(rule.cadence, Cron) or (isinstance(rule.cadence, Every) and rule.fixed_rate)
    missed = 0
    while slot_at < late and missed < MOST_MISSED:
        missed += 1
        if not is_grid:
            # Counted from the end of each run, no other slot can have passed.
            break
        slot_at = _following(rule, slot_at)
    return missed


def _following(rule: Recurrence, slot_at: datetime) -> datetime:
    match rule.cadence:
        case Every(period) | ByHandler(period):
            return slot_at + period
        case Cron() as cron:
            return cron.after(slot_at, zone_of(rule.timezone))


def _fire(rule: Recurrence, at: datetime, zone: ZoneInfo) -> Fire:
    local = at.astimezone(zone)
    return Fire(at, local, local.utcoffset() or timedelta(), _shift(rule, local) if isinstance(rule.cadence, Cron) else None)


def _shift(rule: Recurrence, local: datetime) -> Shift | None:
    if isinstance(rule.cadence, Cron) and not matches(rule.cadence.fields, local.replace(tzinfo=None, fold=0)):
        return Shift.MOVED
    early, late = (local.replace(fold=fold).astimezone(UTC) for fold in (0, 1))
    return Shift.REPEATED if late - early >= MICROSECOND else None
