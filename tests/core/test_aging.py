"""Aging is a formula."""

from __future__ import annotations

from datetime import timedelta

import pytest

from windlass.core.aging import aged


@pytest.mark.parametrize(
    ("minutes", "priority", "base", "expected"),
    [
        (59, 0, 0, 0),
        (60, 0, 0, 0),
        (61, 0, 0, 10),
        (65, 0, 0, 20),
        (66, 0, 0, 20),
        (61, 95, 95, 100),
        (61, 40, 0, 40),
        (61, 500, 500, 500),
        (61, -50, -50, -40),
        (60 * 24 * 365, 0, 0, 100),
    ],
)
def test_a_job_gains_ten_after_an_hour_and_ten_more_every_five_minutes(
    *, minutes: int, priority: int, base: int, expected: int
) -> None:
    assert aged(priority, base, timedelta(minutes=minutes)) == expected
