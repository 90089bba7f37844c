"""Rules with all their options: what follows what, whatever is asked."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.core.test_cadence import BAD_TEXTS, CADENCES, INSTANTS, LONG_DAY, RECURRENCES, SHORT_DAY, ZONES
from windlass.core.cadence import (
    MICROSECOND,
    MISSED_AFTER,
    ByHandler,
    Cron,
    Every,
    Misfire,
    Overlap,
    Recurrence,
    parse_cadence,
)
from windlass.errors import InvalidInput

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
PERIODS = st.timedeltas(min_value=timedelta(seconds=1), max_value=timedelta(days=3))
LATE = st.timedeltas(min_value=timedelta(), max_value=timedelta(days=2))
FREQUENT = st.sampled_from([Cron("@hourly"), Cron("*/7 * * * *"), Cron("30 2 * * *"), Cron("* * * * *")])


@given(rule=RECURRENCES, slot=INSTANTS, late=LATE)
def test_the_slot_after_a_run_is_after_the_one_it_served(rule: Recurrence, slot: datetime, late: timedelta) -> None:
    assert rule.next(slot, slot + late) > slot


@given(rule=RECURRENCES, now=INSTANTS)
def test_the_first_slot_is_never_past(rule: Recurrence, now: datetime) -> None:
    first = rule.first(now)
    assert first >= now if isinstance(rule.cadence, ByHandler) else first > now


@given(period=PERIODS, slot=INSTANTS, lates=st.lists(LATE, min_size=1, max_size=6), misfire=st.sampled_from(Misfire))
def test_a_fixed_rate_never_drifts(period: timedelta, slot: datetime, lates: list[timedelta], misfire: Misfire) -> None:
    rule = Recurrence(cadence=Every(period), fixed_rate=True, misfire=misfire)
    anchor = slot
    for late in lates:
        slot = rule.next(rule.served(slot, slot + late), slot + late)
        assert (slot - anchor) % period == timedelta()


@given(cadence=st.builds(Every, PERIODS) | FREQUENT, start=INSTANTS, now=INSTANTS, zone=st.sampled_from(ZONES))
def test_no_slot_comes_before_the_start(cadence: Every | Cron, start: datetime, now: datetime, zone: str) -> None:
    rule = Recurrence(cadence=cadence, start_at=start, timezone=zone)
    assert rule.first(now) >= start
    assert rule.next(None, now) >= start


@given(period=PERIODS, start=INSTANTS, now=INSTANTS)
def test_an_interval_is_anchored_at_its_start(period: timedelta, start: datetime, now: datetime) -> None:
    first = Recurrence(cadence=Every(period), start_at=start, fixed_rate=True).first(now)
    assert (first - start) % period == timedelta()
    assert first == start or first - period <= now


def test_cron_takes_its_start_if_that_is_one_of_its_times() -> None:
    rule = Recurrence(cadence=Cron("@hourly"), start_at=NOON + 5 * HOUR)
    assert rule.first(NOON) == NOON + 5 * HOUR
    assert rule.first(NOON + 5 * HOUR) == NOON + 6 * HOUR


@given(
    cadence=st.builds(Every, st.timedeltas(min_value=MINUTE, max_value=HOUR)) | FREQUENT,
    late=st.timedeltas(min_value=MISSED_AFTER + MICROSECOND, max_value=timedelta(days=2)),
    most=st.integers(min_value=1, max_value=20),
    slot=INSTANTS,
)
def test_all_serves_at_most_its_number_of_missed_slots(cadence: Every | Cron, late: timedelta, most: int, slot: datetime) -> None:
    rule = Recurrence(cadence=cadence, fixed_rate=True, misfire=Misfire.ALL, misfire_max=most)
    slot = rule.first(slot)
    now = slot + late
    served = []
    at = rule.caught_up(slot, now)
    while at <= now:
        served.append(at)
        at = rule.next(at, now)
    assert 1 <= len(served) <= most
    assert len(served) == most or served[0] == slot


@given(cadence=CADENCES, late=LATE, slot=INSTANTS, zone=st.sampled_from(ZONES), is_fixed=st.booleans())
def test_skip_turns_to_the_first_slot_that_is_not_missed(
    cadence: Every | Cron | ByHandler, late: timedelta, slot: datetime, zone: str, *, is_fixed: bool
) -> None:
    assume(late > MISSED_AFTER)
    rule = Recurrence(cadence=cadence, misfire=Misfire.SKIP, timezone=zone, fixed_rate=is_fixed)
    found = rule.caught_up(slot, slot + late)
    assert slot + late - found <= MISSED_AFTER


@given(rule=RECURRENCES, slot=INSTANTS, late=LATE)
def test_once_keeps_the_slot_it_waits_for(rule: Recurrence, slot: datetime, late: timedelta) -> None:
    assert replace(rule, misfire=Misfire.ONCE).caught_up(slot, slot + late) == slot


@given(jitter=st.timedeltas(min_value=timedelta(), max_value=HOUR), seed=st.integers())
def test_jitter_is_bounded_and_comes_from_the_dice_it_is_given(jitter: timedelta, seed: int) -> None:
    rule = Recurrence(cadence=Cron("@daily"), jitter=jitter)
    found = rule.run_time(NOON, Random(seed))
    assert NOON <= found <= NOON + jitter
    assert found == rule.run_time(NOON, Random(seed))


@given(
    rule=RECURRENCES,
    start=st.none() | INSTANTS,
    jitter=st.timedeltas(min_value=timedelta(), max_value=HOUR),
    overlap=st.sampled_from(Overlap),
)
def test_every_rule_is_read_as_it_was_written(
    rule: Recurrence, start: datetime | None, jitter: timedelta, overlap: Overlap
) -> None:
    assume(start is None or rule.end_at is None or start <= rule.end_at)
    full = replace(rule, start_at=start, jitter=jitter, overlap=overlap)
    assert Recurrence.decode(full.encode()) == full


# As rows have them since before these options were there.
@pytest.mark.parametrize(
    "text",
    [
        '{"cadence":"@daily"}',
        '{"cadence":"@every 30m","fixed_rate":true,"misfire":"all","misfire_max":3}',
        '{"cadence":"@handler 1h","timezone":"Europe/Berlin","on_exhausted":"fail","end_at":1772452800000000,"max_runs":4}',
    ],
)
def test_rules_of_older_rows_are_read_and_written_the_same(text: str) -> None:
    assert Recurrence.decode(text).encode() == text


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"jitter": -MINUTE}, "jitter"),
        ({"jitter": 5}, "jitter"),
        ({"start_at": datetime(2026, 1, 1)}, "start_at"),  # noqa: DTZ001 - that is what is wrong with it
        ({"start_at": NOON, "end_at": NOON - MINUTE}, "end_at"),
        ({"overlap": "skip it"}, "overlap"),
        ({"misfire": "never"}, "misfire"),
        ({"misfire_max": 0}, "misfire_max"),
        ({"timezone": "Europe/Bonn"}, "timezone"),
        ({"timezone": "../etc/passwd"}, "timezone"),
        ({"max_runs": 0}, "max_runs"),
    ],
)
def test_bad_options_are_refused_by_name(options: dict[str, object], field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        Recurrence(cadence=Cron("@daily"), **options)  # type: ignore[arg-type]
    assert caught.value.field == field


@pytest.mark.parametrize("text", BAD_TEXTS)
def test_every_bad_expression_is_a_value_error_that_names_the_field(text: str) -> None:
    with pytest.raises(ValueError, match=r"^cadence: "):
        parse_cadence(text)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("@reboot", "'@reboot' is none of @every"),
        ("@dayly", "'@dayly' is none of"),
        ("@every 5x", "'5x' at character 1 has an unknown unit"),
        ("@every 1h5", "'5' at character 3 has no unit"),
        ("@every 500ms", "must be at least 1s"),
        ("0 25 * * *", r"field 2 \(hour\) cannot be '25'"),
        ("0 3 * * mon-fry", r"field 5 \(day of week\) cannot be 'mon-fry'"),
    ],
)
def test_an_error_points_at_the_bad_part(text: str, part: str) -> None:
    with pytest.raises(InvalidInput, match=part):
        parse_cadence(text)


@pytest.mark.parametrize(
    ("text", "day", "runs"),
    [
        ("30 2 * * *", SHORT_DAY, 1),
        ("30 2 * * *", LONG_DAY, 1),
        ("*/30 * * * *", SHORT_DAY, 46),
        ("*/30 * * * *", LONG_DAY, 50),
    ],
)
@pytest.mark.parametrize("misfire", Misfire)
def test_gap_and_fold_through_a_job_that_comes_back(text: str, day: datetime, runs: int, misfire: Misfire) -> None:
    rule = Recurrence(cadence=Cron(text), timezone="Europe/Berlin", misfire=misfire)
    end = (day + timedelta(days=1)).astimezone(UTC)
    slot, served = rule.first(day.astimezone(UTC) - MICROSECOND), 0
    while slot < end:
        served += 1
        slot = rule.next(slot, slot + timedelta(seconds=1))
    assert served == runs


def test_one_late_run_stands_for_all_it_is_late_for() -> None:
    rule = Recurrence(cadence=Every(30 * MINUTE), fixed_rate=True)
    assert rule.next(rule.served(NOON, NOON + 3 * HOUR), NOON + 3 * HOUR + MINUTE) == NOON + 3 * HOUR + 30 * MINUTE
    assert rule.served(NOON, NOON + 30 * MINUTE) == NOON
    assert rule.served(None, NOON) is None


def test_years_of_missed_minutes_are_looked_at_from_the_end() -> None:
    rule = Recurrence(cadence=Cron("* * * * *"), misfire=Misfire.ALL, misfire_max=5)
    assert rule.caught_up(NOON - timedelta(days=3650), NOON) == NOON - 4 * MINUTE


def test_what_moves_the_next_time_and_what_does_not() -> None:
    rule = Recurrence(cadence=Cron("@daily"))
    assert rule.keeps_time_of(replace(rule, jitter=MINUTE, misfire=Misfire.SKIP, max_runs=3, overlap=Overlap.SKIP))
    for changed in (
        replace(rule, cadence=Cron("@hourly")),
        replace(rule, timezone="Europe/Berlin"),
        replace(rule, start_at=NOON),
        replace(rule, fixed_rate=True),
    ):
        assert not rule.keeps_time_of(changed)
