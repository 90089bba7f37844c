from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from windlass.core.cadence import ByHandler, Every, Recurrence, parse_cadence
from windlass.core.preview import MOST_MISSED, Shift, count_missed, fires_from, preview
from windlass.errors import InvalidInput

NOON = datetime(2026, 3, 28, 12, tzinfo=UTC)
AUTUMN = datetime(2026, 10, 24, 12, tzinfo=UTC)


def shown(text: str, now: datetime, count: int, zone: str = "Europe/Berlin") -> list[tuple[str, str | None]]:
    fires = preview(Recurrence(cadence=parse_cadence(text), timezone=zone), now, count)
    # Compared in UTC: Python calls no time of a repeated hour equal to one of another zone.
    assert all(fire.local.astimezone(UTC) == fire.at and fire.local.utcoffset() == fire.utc_offset for fire in fires)
    return [(f"{fire.local:%d %H:%M%z}", fire.shift) for fire in fires]


def test_a_time_that_the_clock_jumps_over_is_marked_as_moved() -> None:
    assert shown("30 2 * * *", NOON, 3) == [("29 03:00+0200", Shift.MOVED), ("30 02:30+0200", None), ("31 02:30+0200", None)]


def test_a_time_that_the_clock_shows_twice_is_marked_as_repeated() -> None:
    assert shown("30 2 * * *", AUTUMN, 2) == [("25 02:30+0200", Shift.REPEATED), ("26 02:30+0100", None)]


def test_a_job_every_half_hour_runs_in_both_of_the_repeated_hours() -> None:
    found = shown("*/30 * * * *", datetime(2026, 10, 24, 23, 45, tzinfo=UTC), 6)
    assert found == [
        ("25 02:00+0200", Shift.REPEATED),
        ("25 02:30+0200", Shift.REPEATED),
        ("25 02:00+0100", Shift.REPEATED),
        ("25 02:30+0100", Shift.REPEATED),
        ("25 03:00+0100", None),
        ("25 03:30+0100", None),
    ]


def test_an_interval_has_no_marks() -> None:
    assert shown("@every 12h", NOON, 3) == [("29 01:00+0100", None), ("29 14:00+0200", None), ("30 02:00+0200", None)]


def test_a_rule_that_ends_shows_fewer_times() -> None:
    rule = Recurrence(cadence=Every(timedelta(hours=1)), end_at=NOON + timedelta(hours=3))
    assert len(preview(rule, NOON, 10)) == 3
    assert len(preview(Recurrence(cadence=Every(timedelta(hours=1)), max_runs=2), NOON, 10)) == 2


def test_a_job_whose_handler_chooses_shows_its_fallback() -> None:
    found = preview(Recurrence(cadence=ByHandler(timedelta(hours=1))), NOON, 2)
    assert [fire.at for fire in found] == [NOON, NOON + timedelta(hours=1)]


@pytest.mark.parametrize("count", [0, 1001])
def test_a_preview_is_bounded(count: int) -> None:
    with pytest.raises(InvalidInput, match="count"):
        preview(Recurrence(cadence=Every(timedelta(hours=1))), NOON, count)


def test_the_times_of_a_job_begin_with_the_one_it_waits_for() -> None:
    rule = Recurrence(cadence=parse_cadence("0 * * * *"), max_runs=4)
    assert [f"{fire.at:%H:%M}" for fire in fires_from(rule, NOON, 5, completed_runs=1)] == ["12:00", "13:00", "14:00"]


@pytest.mark.parametrize(
    ("text", "is_fixed", "late", "missed"),
    [
        ("0 * * * *", False, timedelta(seconds=60), 0),
        ("0 * * * *", False, timedelta(seconds=61), 1),
        ("0 * * * *", False, timedelta(hours=2, minutes=30), 3),
        ("@every 10m", True, timedelta(minutes=25), 3),
        ("@every 10m", False, timedelta(minutes=25), 1),
        ("@handler 10m", False, timedelta(minutes=25), 1),
        ("* * * * *", False, timedelta(days=9), MOST_MISSED),
    ],
)
def test_times_that_passed_without_a_run_are_counted(text: str, is_fixed: bool, late: timedelta, missed: int) -> None:  # noqa: FBT001
    assert count_missed(Recurrence(cadence=parse_cadence(text), fixed_rate=is_fixed), NOON, NOON + late) == missed
