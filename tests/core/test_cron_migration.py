"""The interval scheduler's migration: what converts fires at the same times ever after, and the rest is left alone."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windlass.core.cadence import Cron, Every, Misfire, Recurrence, zone_of
from windlass.core.cron_migration import Even, Review, judge
from windlass.core.job import JobState

NOW = datetime(2026, 3, 10, 11, 7, 13, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def rule(expression: str, timezone: str = "UTC") -> Recurrence:
    return Recurrence(cadence=Cron(expression), timezone=timezone)


def judged(expression: str, timezone: str = "UTC") -> Even | Review | None:
    given = rule(expression, timezone)
    return judge(given, JobState.SCHEDULED, given.first(NOW))


@pytest.mark.parametrize(
    ("expression", "minutes"),
    [
        # The interval scheduler's own three.
        ("0 * * * *", 60),
        ("0 0 * * *", 1440),
        ("0 */6 * * *", 360),
        ("* * * * *", 1),
        ("*/15 * * * *", 15),
        ("7-59/15 * * * *", 15),
        ("5,35 * * * *", 30),
        ("30 2 * * *", 1440),
        ("0 0,12 * * *", 720),
        ("15 1-23/2 * * *", 120),
        ("0 9 * * mon", 10080),
        ("0 0 * * 0-6", 1440),
    ],
)
def test_what_divides_evenly_converts(expression: str, minutes: int) -> None:
    verdict = judged(expression)
    assert isinstance(verdict, Even)
    assert (verdict.period, verdict.rule.fixed_rate) == (minutes * MINUTE, True)


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("*/7 * * * *", "between 4 min and 7 min"),
        ("0 */5 * * *", "not evenly spaced"),
        ("0 9 * * 1-5", "between 1440 min and 4320 min"),
        ("0 0 1 * *", "days of the month"),
        ("0 0 */2 * *", "days of the month"),
        ("0 0 * 1 *", "months"),
        ("0 0 * * 5#1", "days of the month"),
        ("0 0 * * 5L", "days of the month"),
        ("0,1 * * * *", "between 1 min and 59 min"),
    ],
)
def test_what_does_not_is_left_for_review(expression: str, words: str) -> None:
    verdict = judged(expression)
    assert isinstance(verdict, Review)
    assert words in verdict.reason


@pytest.mark.parametrize(
    ("expression", "timezone", "is_even"),
    [
        ("30 2 * * *", "Europe/Berlin", False),
        ("0 */6 * * *", "Europe/Berlin", False),
        ("0 * * * *", "Europe/Berlin", True),
        ("*/30 * * * *", "Europe/Berlin", True),
        # Half an hour of daylight saving.
        ("0 * * * *", "Australia/Lord_Howe", False),
        ("*/30 * * * *", "Australia/Lord_Howe", True),
        ("30 2 * * *", "Asia/Kolkata", True),
        ("0 0 * * *", "Etc/GMT+5", True),
    ],
)
def test_a_zone_that_changes_its_clock_keeps_what_follows_it(*, expression: str, timezone: str, is_even: bool) -> None:
    assert isinstance(judged(expression, timezone), Even) == is_even


@pytest.mark.parametrize("cadence", [Every(MINUTE), Cron("@daily")])
def test_intervals_and_names_have_nothing_to_convert(cadence: Every | Cron) -> None:
    assert judge(Recurrence(cadence=cadence), JobState.SCHEDULED, NOW) is None


def test_the_other_options_stay() -> None:
    given = Recurrence(cadence=Cron("0 * * * *"), misfire=Misfire.SKIP, max_runs=7, timezone="Asia/Kolkata")
    verdict = judge(given, JobState.SCHEDULED, given.first(NOW))
    assert isinstance(verdict, Even)
    assert (verdict.rule.misfire, verdict.rule.max_runs, verdict.rule.timezone) == (Misfire.SKIP, 7, "Asia/Kolkata")


def test_a_paused_job_and_one_out_of_step_are_left_for_review() -> None:
    assert isinstance(judge(rule("0 * * * *"), JobState.PAUSED, NOW.replace(minute=0, second=0)), Review)
    assert isinstance(judge(rule("0 * * * *"), JobState.SCHEDULED, NOW), Review)
    assert isinstance(judge(rule("0 * * * *"), JobState.SCHEDULED, None), Review)


FORMS = st.sampled_from(["*", "0", "13", "*/5", "*/7", "*/15", "*/20", "0,30", "7-59/10", "3-58/5"])
HOURS = st.sampled_from(["*", "0", "2", "*/2", "*/5", "*/6", "*/8", "0,12", "1-23/2", "5,11,17,23"])
DAYS = st.sampled_from(["*", "0", "mon", "1-5", "0-6", "1,4"])
ZONES = st.sampled_from(["UTC", "Europe/Berlin", "Australia/Lord_Howe", "Asia/Kathmandu", "America/New_York"])


@settings(max_examples=200 if os.environ.get("WINDLASS_TEST_LONG") else 30)
@given(FORMS, HOURS, DAYS, ZONES)
def test_a_converted_job_fires_when_cron_would_for_thirty_days(minute: str, hour: str, day: str, zone: str) -> None:
    given = rule(f"{minute} {hour} * * {day}", zone)
    assert isinstance(given.cadence, Cron)
    # Both changes of the clock of all these zones lie within the days that follow one of these.
    for start in (NOW, NOW + timedelta(days=20), datetime(2026, 10, 3, 15, 31, tzinfo=UTC), datetime(2026, 10, 24, tzinfo=UTC)):
        slot = given.first(start)
        verdict = judge(given, JobState.SCHEDULED, slot)
        if not isinstance(verdict, Even):
            return
        cron_at = slot
        # Every fire of thirty days for a slow one; of a fast one as many as fit around a change.
        for _ in range(min(30 * 24 * 60 // (verdict.period // MINUTE), 1500)):
            ended = slot + timedelta(seconds=1)
            slot = verdict.rule.next(slot, ended)
            cron_at = given.cadence.after(cron_at, zone_of(zone))
            assert slot == cron_at
