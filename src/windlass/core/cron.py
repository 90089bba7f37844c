"""Five cron fields in a time zone; clock changes are treated as Debian's cron treats them."""

from __future__ import annotations

import re
from collections import deque
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from windlass.errors import InvalidInput

FIELDS = ("minute", "hour", "day of month", "month", "day of week")
_LONGEST = 200
_DAYS = ("sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday")
_MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_FULL_NAME = re.compile(rf"\b(?:{'|'.join(_DAYS + _MONTHS)})\b", re.IGNORECASE)
# Sunday is the first day of the week to cron and the last one to most people.
_TO_SUNDAY = re.compile(r"\b(mon|tue|wed|thu|fri|sat|[1-6])-sun\b", re.IGNORECASE)
_HINTS = {
    "day of week": "; days are sun to sat or 0 to 7, and a range runs forward, as in mon-fri or sat-sun",
    "month": "; months are jan to dec or 1 to 12, and a range runs forward, as in nov-dec",
}
_MINUTE = timedelta(minutes=1)
_SECOND = timedelta(seconds=1)
_NEAR = timedelta(days=2)
_ANY_DAY = datetime(1970, 1, 1)  # noqa: DTZ001 - a wall clock without a place


@lru_cache(maxsize=1024)
def short_names(fields: str) -> str:
    """Write full names of days and months as cron knows them, and a range that ends on Sunday with its number."""
    parts = fields.split()
    if len(parts) != len(FIELDS):
        return fields
    months, days = (_FULL_NAME.sub(lambda found: found[0][:3], part) for part in parts[3:])
    return " ".join([*parts[:3], months, _TO_SUNDAY.sub(r"\1-7", days)])


@lru_cache(maxsize=1024)
def check_cron(text: str, fields: str) -> None:
    """Refuse what is not cron, pointing at the field that is wrong, and what never fires."""
    parts = fields.split()
    if len(fields) > _LONGEST or len(parts) != len(FIELDS):
        raise InvalidInput("cadence", text, f"is not a cron expression: it has five fields, this has {len(parts)}")
    for place, (name, part) in enumerate(zip(FIELDS, parts, strict=True)):
        alone = " ".join(part if each == place else "*" for each in range(len(FIELDS)))
        if not _is_readable(alone):
            hint = _HINTS.get(name, "")
            reason = f"is not a cron expression: field {place + 1} ({name}) cannot be {part!r}{hint}"
            raise InvalidInput("cadence", text, reason)
    # Found out now, and not when a run has already ended.
    if not _is_readable(fields) or next(CronSim(fields, _ANY_DAY), None) is None:
        raise InvalidInput("cadence", text, "never fires")


def _is_readable(fields: str) -> bool:
    try:
        CronSim(fields, _ANY_DAY)
    except (CronSimError, ValueError):
        return False
    return True


def next_fire(fields: str, moment: datetime, zone: ZoneInfo) -> datetime | None:
    """Find the first fire strictly after `moment`.

    The library only walks a wall clock that never changes; what a wall time means in the zone is decided here. It has rules
    for zones too, but loses fires where a zone moves by half an hour.
    """
    offsets = [(moment + shift).astimezone(zone).utcoffset() or timedelta() for shift in (-_NEAR, timedelta(), _NEAR)]
    spread = max(offsets) - min(offsets)
    local = moment.astimezone(zone).replace(tzinfo=None)
    is_wild = any(part.startswith("*") for part in fields.split()[:2])
    best: datetime | None = None
    for wall in CronSim(fields, local - spread - _MINUTE):
        if best is not None and wall - max(offsets) >= best.replace(tzinfo=None):
            break
        fires = [fire for fire in _instants(wall, zone, is_wild=is_wild) if fire > moment]
        best = min([*fires, best]) if best is not None else min(fires, default=None)
        # Far from a change of the clock, wall times come in the order of their instants.
        if best is not None and not spread:
            break
    return best


def latest_fires(fields: str, first: datetime, last: datetime, zone: ZoneInfo, *, most: int) -> list[datetime]:
    """Find the last `most` fires up to `last`, none before `first`, which is a fire itself; oldest first.

    Looks back further and further: a job that fires every minute may have waited for years.
    """
    # No cron fires more often than once a minute.
    reach = most * _MINUTE
    while True:
        start = last - min(reach, last - first)
        found = deque([first] if start == first else [], maxlen=most)
        fire = next_fire(fields, start, zone)
        while fire is not None and fire <= last:
            found.append(fire)
            fire = next_fire(fields, fire, zone)
        if start == first or len(found) == most:
            return list(found)
        reach *= 2


def matches(fields: str, wall: datetime) -> bool:
    """Whether a wall clock that shows this time is one of the five fields' times."""
    return next(CronSim(fields, wall - _MINUTE), None) == wall


def _instants(wall: datetime, zone: ZoneInfo, *, is_wild: bool) -> list[datetime]:
    """Return when a wall clock shows this time: once, twice or never.

    A job at a fixed time runs once in each case: the first time, or when the clock has jumped over it. A job every so often
    runs whenever the clock shows it.
    """
    early, late = (wall.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))
    if early == late:
        return [early]
    if early.astimezone(zone).replace(tzinfo=None) == wall:
        return [early, late] if is_wild else [early]
    return [] if is_wild else [_end_of_gap(late, early, zone)]


def _end_of_gap(before: datetime, after: datetime, zone: ZoneInfo) -> datetime:
    """Find the moment between the two at which the clock jumped."""
    jumped_to = after.astimezone(zone).utcoffset()
    while after - before > _SECOND:
        middle = before + (after - before) // 2
        middle = middle.replace(microsecond=0)
        if middle.astimezone(zone).utcoffset() == jumped_to:
            after = middle
        else:
            before = max(middle, before + _SECOND)
    return after
