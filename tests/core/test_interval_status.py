"""The interval scheduler's words for states, and intervals as they were given."""

from __future__ import annotations

from datetime import timedelta

import pytest

from windlass.core.cadence import Cron, Every, Recurrence
from windlass.core.interval import IntervalChange, IntervalForm, shown_interval, states_of, status_of
from windlass.core.job import WAITING, JobState, WaitReason
from windlass.errors import InvalidInput

KINDS = [(state, reason) for state in JobState for reason in (WaitReason if state in WAITING else [None])]


@pytest.mark.parametrize("reason", WaitReason)
def test_only_a_fresh_job_is_pending(reason: WaitReason) -> None:
    is_fresh = reason in {WaitReason.NEW, WaitReason.OPERATOR}
    assert status_of(JobState.PENDING, reason) is (JobState.PENDING if is_fresh else JobState.SCHEDULED)
    assert status_of(JobState.SCHEDULED, reason) is JobState.SCHEDULED
    assert status_of(JobState.PAUSED, reason) is JobState.PAUSED


def test_every_job_has_exactly_one_status_and_its_filter_finds_it() -> None:
    for state, reason in KINDS:
        finding = [
            status
            for status in JobState
            for one in states_of(status)
            if one.state is state and (one.reasons is None or reason in one.reasons)
        ]
        assert finding == [status_of(state, reason)]


@pytest.mark.parametrize(("number", "unit"), [(30, "minutes"), (6, "hours"), (1, "days"), (360, "minutes"), (48, "hours")])
def test_an_interval_is_shown_as_it_was_given(number: int, unit: str) -> None:
    rule = IntervalForm(interval_minutes=number, interval_type=unit).recurrence()
    assert rule is not None
    assert shown_interval(Recurrence.decode(rule.encode())) == (number, unit)


def test_an_interval_without_a_unit_is_shown_in_the_largest_that_fits() -> None:
    shown = {timedelta(minutes=90): (90, "minutes"), timedelta(hours=2): (2, "hours"), timedelta(days=2): (2, "days")}
    for period, expected in shown.items():
        assert shown_interval(Recurrence(cadence=Every(period))) == expected
    assert shown_interval(Recurrence(cadence=Every(timedelta(seconds=90)))) is None
    assert shown_interval(Recurrence(cadence=Cron("@daily"))) is None
    assert shown_interval(None) is None


def test_a_change_of_an_interval_keeps_what_it_does_not_name() -> None:
    rule = Recurrence(cadence=Every(timedelta(hours=2)), unit="hours")
    assert IntervalChange(5, None).fields(rule) == {"cadence": Every(timedelta(hours=5)), "unit": "hours"}
    assert IntervalChange(None, "days").fields(rule) == {"cadence": Every(timedelta(days=2)), "unit": "days"}
    assert IntervalChange(5, None).fields(Recurrence(cadence=Cron("@daily"))) == {
        "cadence": Every(timedelta(minutes=5)),
        "unit": "minutes",
    }
    with pytest.raises(InvalidInput, match="interval_type"):
        IntervalChange(None, "days").fields(Recurrence(cadence=Cron("@daily")))
