"""What charts draw: bars, lines, areas, histograms, gauges and the time line, and the numbers beside them."""

from __future__ import annotations

import re
from datetime import timedelta
from itertools import pairwise

import pytest

from windlass.core.histogram import Histogram, bucket
from windlass.testing import FakeClock
from windlass.web.dashboard import charts
from windlass.web.dashboard.charts import HEIGHT, Scale, Values

NOW = FakeClock().now()


def heights(path: str) -> list[float]:
    return [-float(found) for found in re.findall(r"v(-[\d.]+)", path)]


def test_the_tallest_stack_is_as_high_as_the_chart() -> None:
    series = [Values("completed", "completed", [0, 90, 1]), Values("failed", "failed", [0, 10, 0])]
    completed, failed = charts.stacked(series, charts.counts_scale([0, 100, 1]))
    assert heights(completed.path)[0] + heights(failed.path)[0] == pytest.approx(HEIGHT, abs=0.2)
    assert heights(completed.path)[1] == charts._LEAST_BAR
    # The failures stand on top of what completed.
    assert failed.path.startswith(f"M11 {HEIGHT - heights(completed.path)[0]:.1f}".removesuffix(".0"))


def test_a_missing_value_is_a_gap_and_a_lone_one_is_still_seen() -> None:
    [line] = charts.lines([Values("p50", "p50", [1, 2, None, 4])], Scale(0, 4))
    assert line.path.count("M") == 2
    assert line.path.endswith("m-3 0h6")
    below, line = charts.area(Values("pending", "waiting", [None, 1, 2, None]), Scale(0, 2))
    assert below.path.startswith(f"M15 {HEIGHT}L15 ")
    assert below.path.endswith(f"L25 {HEIGHT}z")


def test_axes_end_in_round_numbers_and_their_labels_do_not_touch() -> None:
    assert [charts.round_count(most) for most in (0, 1, 3, 12, 101)] == [1, 1, 5, 20, 200]
    scale = charts.times_scale([3.0, None, 14_000.0])
    assert (scale.low, scale.top) == (1.0, 60_000.0)
    marks = charts.axis(scale, charts.ms_text)
    assert [mark.text for mark in marks][:2] == ["1 min", "10 s"]
    assert all(later.at - sooner.at >= 13 for sooner, later in pairwise(marks))
    assert charts.times_scale([None]).top > charts.times_scale([None]).low


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (None, "—"),
        (0.5, "0.5 ms"),
        (843.4, "843 ms"),
        (1250, "1.25 s"),
        (150_000, "2.5 min"),
        (5_400_000, "1.5 h"),
        (9e7, "1.04 d"),
    ],
)
def test_times_are_written_to_three_digits(value: float | None, written: str) -> None:
    assert charts.ms_text(value) == written


def test_a_histogram_has_every_bucket_between_the_first_and_the_last() -> None:
    found = Histogram({bucket(12): 3, bucket(40): 1})
    chart, numbers = charts.histogram("waits", "Waits", found)
    assert chart.points == len(numbers.rows) == bucket(40) - bucket(12) + 1
    assert numbers.rows[0] == ("10 ms to 12.5 ms", ("3", "75 %"))
    assert "4 runs: half up to" in chart.summary
    empty, none = charts.histogram("waits", "Waits", Histogram())
    assert (empty.is_empty, none.rows) == (True, [])


def test_a_gauge_shows_how_full_it_is() -> None:
    assert charts.gauge(3, 4) == charts.Gauge(75, "3 of 4", "high")
    assert charts.gauge(8, 4).percent == 100
    assert charts.gauge(0, 0) == charts.Gauge(0, "0 of 0", "low")


def test_what_is_near_has_more_room_on_the_time_line() -> None:
    places = [charts.along(NOW + timedelta(seconds=seconds), NOW) for seconds in (-5, 0, 60, 3600, 86_400, 999_999)]
    assert places[:2] == [0, 0]
    assert places[-2:] == [100, 100]
    assert places[1] < places[2] < places[3] < places[4]
    assert places[2] > 20


def test_moments_are_labelled_within_the_chart() -> None:
    moments = [NOW + timedelta(minutes=place) for place in range(60)]
    marks = charts.clock(moments, timedelta(minutes=1))
    assert len(marks) == 6
    assert all(0 < mark.at < 100 for mark in marks)
    assert charts.clock([], timedelta(minutes=1)) == []
