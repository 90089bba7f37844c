"""Percentiles from a histogram stay within one step of the true ones."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.core.histogram import BOUNDS, BUCKETS, Histogram, bucket, edges, merge
from windlass.errors import InvalidInput

times = st.lists(st.integers(0, 10**8 - 1), min_size=1, max_size=300)
percents = st.sampled_from([0, 1, 25, 50, 75, 90, 95, 99, 99.9, 100])


def counted(values: list[int]) -> Histogram:
    return merge(Histogram({bucket(value): 1}) for value in values)


def exact(values: list[int], percent: float) -> int:
    return sorted(values)[max(1, math.ceil(len(values) * percent / 100)) - 1]


def test_the_scale_runs_from_one_millisecond_to_a_day_in_quarter_steps() -> None:
    assert BOUNDS[0] == 1
    assert BOUNDS[-1] == 10**8
    assert len(BOUNDS) == 81
    assert BUCKETS == 82
    assert list(BOUNDS[10:20]) == [10, 12.5, 16, 20, 25, 31.5, 40, 50, 63, 80]
    ratios = [high / low for low, high in pairwise(BOUNDS)]
    assert min(ratios) > 1.2
    assert max(ratios) < 1.3


@given(st.integers(0, 10**12))
def test_a_time_lies_between_the_edges_of_its_bucket(ms: int) -> None:
    low, high = edges(bucket(ms))
    assert low <= ms
    assert ms < high or low == high == 10**8


@given(times, percents)
def test_a_percentile_is_in_the_same_bucket_as_the_true_one(values: list[int], percent: float) -> None:
    found = counted(values).percentile(percent)
    assert found is not None
    low, high = edges(bucket(exact(values, percent)))
    assert low <= found <= high


@given(times, times, percents)
def test_merging_is_counting_together(one: list[int], other: list[int], percent: float) -> None:
    together = merge([counted(one), counted(other)])
    assert together == counted(one + other)
    assert together.total == len(one) + len(other)
    assert together.percentile(percent) == counted(other + one).percentile(percent)


@given(times)
def test_percentiles_never_fall(values: list[int]) -> None:
    found = [counted(values).percentile(percent) for percent in range(101)]
    assert found == sorted(found, key=lambda value: value or 0.0)


def test_nothing_counted_has_no_percentile() -> None:
    assert Histogram().percentile(50) is None
    assert merge([]).total == 0


@pytest.mark.parametrize("percent", [-1, 100.5])
def test_a_percentage_is_between_0_and_100(percent: float) -> None:
    with pytest.raises(InvalidInput, match="percent"):
        Histogram({1: 1}).percentile(percent)
