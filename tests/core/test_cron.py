"""Cron against a walker that looks at every real minute and knows nothing of how the engine finds its fires."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from windlass.core.cron import check_cron, next_fire
from windlass.errors import InvalidInput

MINUTE = timedelta(minutes=1)
IS_LONG = bool(os.environ.get("WINDLASS_TEST_LONG"))

ZONES = [
    "Africa/Cairo",
    "Africa/Casablanca",
    "Africa/El_Aaiun",
    "America/Asuncion",
    "America/Chicago",
    "America/Godthab",
    "America/Havana",
    "America/Los_Angeles",
    "America/Mexico_City",
    "America/New_York",
    "America/Nuuk",
    "America/Santiago",
    "America/Scoresbysund",
    "America/St_Johns",
    "Antarctica/Casey",
    "Antarctica/Macquarie",
    "Antarctica/Troll",
    "Asia/Amman",
    "Asia/Beirut",
    "Asia/Damascus",
    "Asia/Gaza",
    "Asia/Hebron",
    "Asia/Jerusalem",
    "Asia/Tehran",
    "Atlantic/Azores",
    "Australia/Adelaide",
    "Australia/Lord_Howe",
    "Australia/Sydney",
    "Europe/Berlin",
    "Europe/Chisinau",
    "Europe/Dublin",
    "Europe/Helsinki",
    "Europe/Istanbul",
    "Europe/London",
    "Europe/Volgograd",
    "Pacific/Apia",
    "Pacific/Auckland",
    "Pacific/Chatham",
    "Pacific/Easter",
    "Pacific/Norfolk",
]
YEAR_ZONES = ["Europe/Berlin", "Australia/Lord_Howe", "America/New_York", "Asia/Kathmandu", "Africa/Casablanca"]
EXPRESSIONS = [
    "30 2 * * *",
    "0,30 2 * * *",
    "15 0,1,2,3 * * *",
    "0 3 * * *",
    "45 1 * * *",
    "*/30 * * * *",
    "*/7 * * * *",
    "0 * * * *",
    "5 */2 * * *",
    "0 */6 * * *",
    "*/20 1-3 * * *",
    "0 0 * * *",
    "59 23 * * *",
    "0 2 * * 0",
]


class Fields:
    """Cron fields of numbers, lists, ranges and steps, as sets."""

    def __init__(self, text: str) -> None:
        minute, hour, day, month, weekday = text.split()
        self.is_wild = minute.startswith("*") or hour.startswith("*")
        self.minutes = numbers(minute, 0, 59)
        self.hours = numbers(hour, 0, 23)
        self.days = numbers(day, 1, 31)
        self.months = numbers(month, 1, 12)
        self.weekdays = {number % 7 for number in numbers(weekday, 0, 7)}

    def fit(self, wall: datetime) -> bool:
        return (
            wall.minute in self.minutes
            and wall.hour in self.hours
            and wall.day in self.days
            and wall.month in self.months
            and wall.isoweekday() % 7 in self.weekdays
        )


def numbers(field: str, low: int, high: int) -> set[int]:
    found: set[int] = set()
    for part in field.split(","):
        span, _, step = part.partition("/")
        first, _, last = (f"{low}-{high}" if span == "*" else span).partition("-")
        found.update(range(int(first), int(last or (high if step else first)) + 1, int(step or 1)))
    return found


def minutes(zone: ZoneInfo, start: datetime, end: datetime) -> list[tuple[datetime, datetime]]:
    """List every real minute with what the wall clock shows."""
    every = (start + MINUTE * step for step in range((end - start) // MINUTE))
    return [(moment, moment.astimezone(zone).replace(tzinfo=None)) for moment in every]


def walk(text: str, seen: list[tuple[datetime, datetime]]) -> list[datetime]:
    """Say when a job fires, minute by minute; the first minute only tells where the clock stands.

    A job every so often fires whenever the clock fits. One at a fixed time fires once for each time the clock shows, and when
    the clock has jumped over it.
    """
    fields = Fields(text)
    fires = []
    before = newest = seen[0][1]
    for moment, wall in seen[1:]:
        if fields.is_wild:
            is_due = fields.fit(wall)
        else:
            is_due = wall > newest and fields.fit(wall)
            if wall > before + MINUTE:
                is_due |= any(fields.fit(before + MINUTE * step) for step in range(1, (wall - before) // MINUTE))
        if is_due:
            fires.append(moment)
        before = wall
        newest = max(newest, wall)
    return fires


def changes(zone: ZoneInfo, first: int, last: int) -> Iterator[datetime]:
    """Find the hours in which a zone's clock changes."""
    moment = datetime(first, 1, 1, tzinfo=UTC)
    step = timedelta(hours=6)
    while moment.year < last:
        if moment.astimezone(zone).utcoffset() != (moment + step).astimezone(zone).utcoffset():
            yield moment
        moment += step


def engine(text: str, zone: ZoneInfo, start: datetime, end: datetime) -> list[datetime]:
    """Ask the engine for one fire after another."""
    fires = []
    moment = next_fire(text, start, zone)
    while moment is not None and moment < end:
        fires.append(moment)
        moment = next_fire(text, moment, zone)
    return fires


@pytest.mark.parametrize("name", ZONES)
def test_around_every_change_of_ten_years_the_fires_are_those_of_the_walker(name: str) -> None:
    zone = ZoneInfo(name)
    found = list(changes(zone, 2017, 2027))
    for change in found if IS_LONG else found[-3:]:
        start, end = change - timedelta(hours=4), change + timedelta(hours=10)
        seen = minutes(zone, start, end)
        for text in EXPRESSIONS:
            assert engine(text, zone, start, end) == walk(text, seen), (text, change)


@pytest.mark.parametrize("name", YEAR_ZONES)
def test_over_a_year_the_fires_are_those_of_the_walker(name: str) -> None:
    zone = ZoneInfo(name)
    start = datetime(2026, 1, 1, tzinfo=UTC)
    end = start + (timedelta(days=365) if IS_LONG else timedelta(days=30))
    seen = minutes(zone, start, end)
    for text in EXPRESSIONS if IS_LONG else ("30 2 * * *", "0 */6 * * *"):
        assert engine(text, zone, start, end) == walk(text, seen), text


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("61 * * * *", r"field 1 \(minute\) cannot be '61'"),
        ("* 24 * * *", r"field 2 \(hour\) cannot be '24'"),
        ("* * 0 * *", r"field 3 \(day of month\) cannot be '0'"),
        ("* * * 13 *", r"field 4 \(month\) cannot be '13'"),
        ("* * * * mon-fry", r"field 5 \(day of week\) cannot be 'mon-fry'"),
        ("* * *", "five fields, this has 3"),
        ("0 0 30 2 *", "never fires"),
    ],
)
def test_an_error_points_at_the_bad_part(text: str, part: str) -> None:
    with pytest.raises(InvalidInput, match=part):
        check_cron(text, text)
