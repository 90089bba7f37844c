"""The interval scheduler's fields that say when, in every combination."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import product

import pytest

from windlass.core.cadence import Cron, Every, OnExhausted
from windlass.core.interval import IntervalForm, interval
from windlass.errors import InvalidInput

MINUTE = timedelta(minutes=1)


@pytest.mark.parametrize(
    ("number", "unit", "period"),
    [
        (30, "minutes", timedelta(minutes=30)),
        (6, "hours", timedelta(hours=6)),
        (1, "days", timedelta(days=1)),
        (30, None, timedelta(minutes=30)),
        (36_525, "days", timedelta(days=36_525)),
    ],
)
def test_the_seeds_examples_are_read(number: int, unit: str | None, period: timedelta) -> None:
    assert interval(number, unit) == Every(period)


@pytest.mark.parametrize(
    ("number", "unit", "field"),
    [
        (0, "minutes", "interval_minutes"),
        (-5, "hours", "interval_minutes"),
        (True, "minutes", "interval_minutes"),
        (36_526, "days", "interval_minutes"),
        (10**30, "hours", "interval_minutes"),
        (5, "weeks", "interval_type"),
        (5, "Minutes", "interval_type"),
        (5, "", "interval_type"),
    ],
)
def test_bad_intervals_are_refused_by_field(number: int, unit: str, field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        interval(number, unit)
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("minutes", "kind", "time", "enabled"),
    list(product((None, 30), (None, "hours"), (None, "0 3 * * *"), (None, True, False))),
)
def test_every_combination_is_decided(minutes: int | None, kind: str | None, time: str | None, enabled: bool | None) -> None:  # noqa: FBT001 - a case
    form = IntervalForm(interval_minutes=minutes, interval_type=kind, schedule_time=time, schedule_enabled=enabled)
    if minutes is None and time is None and (kind is not None or enabled):
        with pytest.raises(InvalidInput):
            form.recurrence()
        return
    rule = form.recurrence()
    if enabled is False or (minutes is None and time is None):
        assert rule is None
    else:
        assert rule is not None
        assert rule.on_exhausted is OnExhausted.FAIL
        if minutes is None:
            assert rule.cadence == Cron("0 3 * * *")
        else:
            assert rule.cadence == Every(timedelta(hours=30) if kind else timedelta(minutes=30))


def test_one_day_at_a_specific_time() -> None:
    start = datetime(2026, 3, 1, 4, 30, tzinfo=UTC)
    rule = IntervalForm(interval_minutes=1, interval_type="days", start_at=start, fixed_rate=True).recurrence()
    assert rule is not None
    assert rule.first(datetime(2026, 3, 10, 12, tzinfo=UTC)) == datetime(2026, 3, 11, 4, 30, tzinfo=UTC)


@pytest.mark.parametrize("form", [IntervalForm(schedule_time="soon"), IntervalForm(interval_minutes=5, schedule_time="soon")])
def test_a_bad_time_is_refused_even_where_the_interval_wins(form: IntervalForm) -> None:
    with pytest.raises(InvalidInput, match="cadence"):
        form.recurrence()
