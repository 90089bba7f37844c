from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from windlass.core.cadence import ByHandler, Cadence, Cron, Every, Misfire, OnExhausted, Recurrence, parse_cadence, zone_of
from windlass.core.durations import MAX
from windlass.errors import InvalidInput

BASE = datetime(2024, 1, 15, 10, 30, tzinfo=UTC)
NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
SECOND = timedelta(seconds=1)
MICROSECOND = timedelta(microseconds=1)
HALF_HOURLY = Every(30 * MINUTE)
BERLIN = zone_of("Europe/Berlin")
# Local days on which Berlin's clock is set forward and back.
SHORT_DAY = datetime(2026, 3, 29, tzinfo=BERLIN)
LONG_DAY = datetime(2026, 10, 25, tzinfo=BERLIN)

# The reference examples of the rules, and what the first rule lists besides.
REFERENCE = [
    ("@hourly", "2024-01-15T11:00Z"),
    ("@daily", "2024-01-16T00:00Z"),
    ("@midnight", "2024-01-16T00:00Z"),
    ("@weekly", "2024-01-21T00:00Z"),
    ("@monthly", "2024-02-01T00:00Z"),
    ("@yearly", "2025-01-01T00:00Z"),
    ("@annually", "2025-01-01T00:00Z"),
    ("@every 1h", "2024-01-15T11:30Z"),
    ("@every 1h30m", "2024-01-15T12:00Z"),
    ("@every 1d12h", "2024-01-16T22:30Z"),
    ("@every 1.5h", "2024-01-15T12:00Z"),
    ("0 * * * *", "2024-01-15T11:00Z"),
    ("30 10 * * *", "2024-01-16T10:30Z"),
    ("*/15 9-17 * * 1-5", "2024-01-15T10:45Z"),
    ("0 9 * * MON-FRI", "2024-01-16T09:00Z"),
    ("0 0 1 JAN,JUL *", "2024-07-01T00:00Z"),
    ("0 0 L * *", "2024-01-31T00:00Z"),
    ("0 0 * * 5L", "2024-01-26T00:00Z"),
    ("0 0 * * FRI#2", "2024-02-09T00:00Z"),
    ("0 0 29 2 *", "2024-02-29T00:00Z"),
    ("0 0 * * 7", "2024-01-21T00:00Z"),
]

BAD_TEXTS = [
    "",
    " ",
    "soon",
    "@reboot",
    "@Daily",
    "@every",
    "@every soon",
    "@every 1h 30m",
    "@every -1h",
    "@every 36525d1us",
    "@handler soon",
    "@handler -5s",
    "* * * *",
    "60 * * * *",
    "* 24 * * *",
    "* * 0 * *",
    "* * * 13 *",
    "* * * * 8",
    "* * * FOO *",
    "*/0 * * * *",
    "5-1 * * * *",
    "0 0 31 2 *",
    "0 0 31 4,6,9,11 *",
    "* * * * MON#6",
    "\0 * * * *",
    "\ud800 * * * *",
    "٣ * * * *",
]

PERIODS = st.timedeltas(min_value=SECOND, max_value=MAX)
CRON_FIELDS = (
    st.sampled_from(["*", "0", "*/7", "5,35", "10-20/3"]),
    st.sampled_from(["*", "2", "*/6", "1-3", "0,12"]),
    st.sampled_from(["*", "1", "L", "LW", "*/5"]),
    st.sampled_from(["*", "2", "JAN-MAR", "*/2"]),
    st.sampled_from(["*", "0", "7", "MON-FRI", "FRI#2", "5L"]),
)
NAMES = st.sampled_from(["@hourly", "@daily", "@midnight", "@weekly", "@monthly", "@yearly", "@annually"])
CRONS = st.builds(Cron, NAMES | st.tuples(*CRON_FIELDS).map(" ".join))
CADENCES: st.SearchStrategy[Cadence] = st.builds(Every, PERIODS) | st.builds(ByHandler, PERIODS) | CRONS
ZONES = ["UTC", "Europe/Berlin", "America/New_York", "America/Santiago", "Asia/Kathmandu", "Pacific/Apia"]
INSTANTS = st.datetimes(min_value=datetime(1990, 1, 1), max_value=datetime(2080, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001 - the strategy adds the zone
RECURRENCES = st.builds(
    Recurrence,
    cadence=CADENCES,
    timezone=st.sampled_from(ZONES),
    fixed_rate=st.booleans(),
    misfire=st.sampled_from(Misfire),
    misfire_max=st.integers(min_value=1, max_value=1000),
    on_exhausted=st.sampled_from(OnExhausted),
    end_at=st.none() | INSTANTS,
    max_runs=st.none() | st.integers(min_value=1, max_value=2**31 - 1),
)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text)


def fires_on(expression: str, day: datetime) -> list[str]:
    """Give the local times at which a cron job fires on a local day, asked one by one as the engine does."""
    cron = Cron(expression)
    found = []
    moment = cron.after(day.astimezone(UTC) - MICROSECOND, BERLIN)
    while moment.astimezone(BERLIN).date() == day.date():
        found.append(f"{moment.astimezone(BERLIN):%H:%M%z}")
        moment = cron.after(moment, BERLIN)
    return found


def fixed(**options: Any) -> Recurrence:
    """Make a half-hourly rule that counts from the slot."""
    return Recurrence(cadence=HALF_HOURLY, fixed_rate=True, **options)


def refusal(text: str) -> InvalidInput:
    with pytest.raises(InvalidInput) as caught:
        parse_cadence(text)
    return caught.value


@pytest.mark.parametrize(("text", "expected"), REFERENCE)
def test_the_first_run_after_the_reference_time_is_the_documented_one(text: str, expected: str) -> None:
    assert Recurrence(cadence=parse_cadence(text)).first(BASE) == at(expected)


@pytest.mark.parametrize(
    ("text", "cadence"),
    [
        ("@every 30m", Every(30 * MINUTE)),
        ("@every 90", Every(90 * SECOND)),
        ("@every 1s", Every(SECOND)),
        ("@every 1000000000ns", Every(SECOND)),
        (" @every  1h ", Every(HOUR)),
        ("@handler", ByHandler(HOUR)),
        ("@handler 15m", ByHandler(15 * MINUTE)),
        ("@daily", Cron("@daily")),
        (" 0 0 * * * ", Cron("0 0 * * *")),
    ],
)
def test_each_form_is_read_as_its_cadence(text: str, cadence: Cadence) -> None:
    assert parse_cadence(text) == cadence


@pytest.mark.parametrize("text", BAD_TEXTS)
def test_a_bad_text_is_refused_by_its_value(text: str) -> None:
    error = refusal(text)
    assert error.field == "cadence"
    assert str(error.value) in text
    assert repr(error.value) in str(error)


@pytest.mark.parametrize("text", ["@every 0", "@every 1ns", "@every 999ms", "@every 999999us", "@every 0.9s"])
def test_an_interval_below_a_second_is_refused(text: str) -> None:
    assert "cadence: must be at least 1s" in str(refusal(text))


@pytest.mark.parametrize("period", [timedelta(), -SECOND, SECOND - MICROSECOND])
def test_an_interval_made_in_code_below_a_second_is_refused(period: timedelta) -> None:
    with pytest.raises(InvalidInput, match="must be at least 1s"):
        Every(period)


def test_a_sixth_field_is_refused() -> None:
    refusal("* * * * * *")


@pytest.mark.parametrize("text", ["9" * 5000 + " * * * *", "*/" + "9" * 5000 + " * * * *"])
def test_thousands_of_digits_are_refused_like_any_bad_text(text: str) -> None:
    with pytest.raises(InvalidInput):
        parse_cadence(text)


def test_an_expression_that_never_fires_is_refused() -> None:
    refusal("0 0 */10 2 5L")


def test_a_fallback_below_a_second_is_refused() -> None:
    refusal("@handler 0s")


@given(
    st.text()
    | st.text(alphabet="0123456789*/,-L#W? MONJAN@")
    | st.lists(st.text(alphabet="0123456789*/,-L#W", min_size=1, max_size=5), min_size=5, max_size=5).map(" ".join)
    | st.text(alphabet="0123456789.hmsdu -").map("@every {}".format)
)
def test_any_text_gives_a_cadence_or_invalid_input(text: str) -> None:
    try:
        cadence = parse_cadence(text)
    except InvalidInput:
        return
    assert parse_cadence(str(cadence)) == cadence


@given(CADENCES)
def test_a_cadence_is_read_back_from_its_spelling(cadence: Cadence) -> None:
    assert parse_cadence(str(cadence)) == cadence


@given(RECURRENCES)
def test_a_rule_survives_its_stored_form(recurrence: Recurrence) -> None:
    assert Recurrence.decode(recurrence.encode()) == recurrence


def test_a_rule_stores_only_what_differs_from_the_defaults() -> None:
    assert json.loads(Recurrence(cadence=Cron("@daily")).encode()) == {"cadence": "@daily"}
    assert json.loads(fixed(max_runs=3).encode()) == {"cadence": "@every 30m", "fixed_rate": True, "max_runs": 3}


def test_rows_with_the_same_text_share_one_rule() -> None:
    assert Recurrence.decode('{"cadence":"@hourly"}') is Recurrence.decode('{"cadence":"@hourly"}')


@pytest.mark.parametrize(
    "name", ["", "Mars/Olympus", "Europe", "europe/berlin ", "../../etc/passwd", "/etc/passwd", "\0", "\ud800", "Z" * 5000]
)
def test_an_unknown_time_zone_is_refused_by_name(name: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        Recurrence(cadence=HALF_HOURLY, timezone=name)
    assert (caught.value.field, caught.value.value) == ("timezone", name)


@pytest.mark.parametrize("field", ["max_runs", "misfire_max"])
@pytest.mark.parametrize("value", [0, -1])
def test_a_limit_below_one_is_refused_by_name(field: str, value: int) -> None:
    with pytest.raises(InvalidInput) as caught:
        fixed(**{field: value})
    assert (caught.value.field, caught.value.value) == (field, value)


@pytest.mark.parametrize(("field", "value"), [("end_at", datetime(2026, 3, 2)), ("max_runs", True), ("misfire", "sometimes")])  # noqa: DTZ001
def test_an_option_of_another_kind_is_refused_by_name(field: str, value: object) -> None:
    with pytest.raises(InvalidInput) as caught:
        fixed(**{field: value})
    assert caught.value.field == field


def test_a_by_handler_job_runs_first_at_once() -> None:
    assert Recurrence(cadence=ByHandler()).first(NOON) == NOON


def test_an_interval_counts_from_the_end_of_the_run() -> None:
    assert Recurrence(cadence=HALF_HOURLY).next(NOON - 10 * MINUTE, NOON) == NOON + 30 * MINUTE


def test_a_fixed_rate_counts_from_the_slot() -> None:
    assert fixed().next(NOON - 10 * MINUTE, NOON) == NOON + 20 * MINUTE


def test_a_fixed_rate_without_a_slot_counts_from_now() -> None:
    assert fixed().next(None, NOON) == NOON + 30 * MINUTE


def test_cron_takes_the_next_slot_after_now_however_many_have_passed() -> None:
    assert Recurrence(cadence=Cron("@hourly")).next(NOON - 9 * HOUR, NOON + SECOND) == NOON + HOUR


def test_cron_that_ends_on_a_slot_takes_the_one_after_it() -> None:
    assert Recurrence(cadence=Cron("@hourly")).next(NOON - HOUR, NOON) == NOON + HOUR


def test_cron_counts_in_the_time_zone_of_its_job() -> None:
    assert Recurrence(cadence=Cron("@daily"), timezone="Europe/Berlin").first(NOON) == at("2026-03-02T23:00Z")


def test_a_by_handler_job_falls_back_to_its_period() -> None:
    assert Recurrence(cadence=ByHandler(2 * HOUR)).next(NOON, NOON + MINUTE) == NOON + MINUTE + 2 * HOUR


@pytest.mark.parametrize("recurrence", [fixed(), Recurrence(cadence=Cron("@hourly"))])
def test_a_run_by_hand_before_the_slot_keeps_the_slot(recurrence: Recurrence) -> None:
    assert recurrence.next(NOON + 3 * HOUR, NOON + 5 * MINUTE) == NOON + 3 * HOUR


# The run of the 12:00 slot ends at the given time; the job runs every 30 minutes.
MISFIRES = [
    (Misfire.ONCE, "12:10:00", "12:30"),
    (Misfire.SKIP, "12:10:00", "12:30"),
    (Misfire.ALL, "12:10:00", "12:30"),
    # 59 and 60 seconds late is late, not missed.
    (Misfire.ONCE, "12:30:59", "12:30"),
    (Misfire.SKIP, "12:30:59", "12:30"),
    (Misfire.ALL, "12:30:59", "12:30"),
    (Misfire.SKIP, "12:31:00", "12:30"),
    # From 61 seconds on the slot is missed.
    (Misfire.ONCE, "12:31:01", "12:30"),
    (Misfire.SKIP, "12:31:01", "13:00"),
    (Misfire.ALL, "12:31:01", "12:30"),
    # 12:30, 13:00, 13:30, 14:00 and 14:30 were missed.
    (Misfire.ONCE, "14:45:00", "14:30"),
    (Misfire.SKIP, "14:45:00", "15:00"),
    (Misfire.ALL, "14:45:00", "12:30"),
]


@pytest.mark.parametrize(("misfire", "ended", "expected"), MISFIRES)
def test_missed_slots_are_treated_as_the_job_says(misfire: Misfire, ended: str, expected: str) -> None:
    assert fixed(misfire=misfire).next(NOON, at(f"2026-03-02T{ended}Z")) == at(f"2026-03-02T{expected}Z")


@pytest.mark.parametrize(("most", "expected"), [(1, "14:30"), (2, "14:00"), (4, "13:00"), (5, "12:30"), (100, "12:30")])
def test_only_the_newest_missed_slots_run_when_all_is_limited(most: int, expected: str) -> None:
    rule = fixed(misfire=Misfire.ALL, misfire_max=most)
    assert rule.next(NOON, at("2026-03-02T14:45Z")) == at(f"2026-03-02T{expected}Z")


def test_a_limit_of_missed_slots_beyond_reason_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"^misfire_max: "):
        fixed(misfire=Misfire.ALL, misfire_max=2**31 - 1)


def test_skip_still_serves_the_newest_slot_while_it_is_not_late() -> None:
    rule = fixed(misfire=Misfire.SKIP)
    assert rule.next(NOON, NOON + 2 * HOUR + timedelta(seconds=20)) == NOON + 2 * HOUR


@given(
    period=st.timedeltas(min_value=SECOND, max_value=timedelta(days=400)),
    late=st.timedeltas(min_value=timedelta(), max_value=timedelta(days=4000)),
    misfire=st.sampled_from(Misfire),
)
def test_a_fixed_rate_never_leaves_its_grid_nor_repeats_a_slot(period: timedelta, late: timedelta, misfire: Misfire) -> None:
    found = Recurrence(cadence=Every(period), fixed_rate=True, misfire=misfire).next(NOON, NOON + late)
    assert found > NOON
    assert (found - NOON) % period == timedelta()
    assert found <= NOON + late + period


@given(late=st.timedeltas(min_value=timedelta(), max_value=timedelta(days=30)), most=st.integers(min_value=1, max_value=50))
def test_all_catches_up_with_at_most_its_limit_of_missed_runs(late: timedelta, most: int) -> None:
    rule, now = fixed(misfire=Misfire.ALL, misfire_max=most), NOON + late
    slot, runs = rule.next(NOON, now), 0
    while slot <= now:
        slot, runs = rule.next(slot, now), runs + 1
    assert runs == min(late // (30 * MINUTE), most)


@pytest.mark.parametrize(
    ("limits", "completed_runs", "has_ended"),
    [
        ({}, 10**9, False),
        ({"max_runs": 3}, 2, False),
        ({"max_runs": 3}, 3, True),
        ({"max_runs": 3}, 4, True),
        ({"end_at": NOON + MICROSECOND}, 0, False),
        ({"end_at": NOON}, 0, False),
        ({"end_at": NOON - MICROSECOND}, 0, True),
        ({"end_at": NOON, "max_runs": 3}, 3, True),
        ({"end_at": NOON - MICROSECOND, "max_runs": 3}, 0, True),
    ],
)
def test_a_rule_ends_with_its_runs_or_its_time(limits: dict[str, Any], completed_runs: int, has_ended: bool) -> None:  # noqa: FBT001
    assert Recurrence(cadence=HALF_HOURLY, **limits).has_ended(NOON, completed_runs) is has_ended


def test_a_time_that_the_clock_skips_fires_once_when_the_clock_goes_on() -> None:
    assert fires_on("30 2 * * *", SHORT_DAY) == ["03:00+0200"]


def test_a_time_that_comes_twice_fires_once() -> None:
    assert fires_on("30 2 * * *", LONG_DAY) == ["02:30+0200"]


@pytest.mark.parametrize("ended", ["00:30:01", "01:00:00", "01:29:59", "01:30:00", "02:00:00"])
def test_a_run_that_ends_within_the_repeated_hour_comes_back_the_next_day(ended: str) -> None:
    moment = at(f"2026-10-25T{ended}Z")
    assert Cron("30 2 * * *").after(moment, BERLIN) == at("2026-10-26T01:30Z")


@pytest.mark.parametrize(("day", "fires"), [(SHORT_DAY, 46), (LONG_DAY, 50)])
def test_every_half_hour_fires_as_often_as_the_local_day_has_half_hours(day: datetime, fires: int) -> None:
    assert len(fires_on("*/30 * * * *", day)) == fires


@pytest.mark.parametrize("expression", ["@hourly", "0 * * * *"])
@pytest.mark.parametrize(("day", "fires"), [(SHORT_DAY, 23), (LONG_DAY, 25)])
def test_every_hour_fires_as_often_as_the_local_day_has_hours(expression: str, day: datetime, fires: int) -> None:
    assert len(fires_on(expression, day)) == fires


@given(cron=CRONS, moment=INSTANTS, zone=st.sampled_from(ZONES))
def test_the_next_fire_lies_after_the_moment_it_was_asked_at(cron: Cron, moment: datetime, zone: str) -> None:
    assert cron.after(moment, zone_of(zone)) > moment


@given(
    cron=st.tuples(*CRON_FIELDS[:2]).map(lambda fields: Cron(f"{' '.join(fields)} * * *")),
    day=st.sampled_from([SHORT_DAY, LONG_DAY]),
    early=st.timedeltas(min_value=timedelta(), max_value=6 * HOUR),
    share=st.floats(min_value=0, max_value=1),
)
def test_asking_later_but_before_the_fire_finds_the_same_fire(cron: Cron, day: datetime, early: timedelta, share: float) -> None:
    moment = day.astimezone(UTC) + early
    fire = cron.after(moment, BERLIN)
    later = moment + (fire - moment) * share
    assume(later < fire)
    assert cron.after(later, BERLIN) == fire


@pytest.mark.parametrize("day", ["2026-04-05", "2026-10-04"])
def test_a_change_by_half_an_hour_loses_no_fire(day: str) -> None:
    zone = zone_of("Australia/Lord_Howe")
    midnight = datetime.fromisoformat(day).replace(tzinfo=zone)
    six = midnight.replace(hour=6)
    assert Cron("0 */6 * * *").after(midnight.astimezone(UTC), zone) == six.astimezone(UTC)
