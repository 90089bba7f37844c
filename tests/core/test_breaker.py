"""A breaker's own rules, without a database."""

from __future__ import annotations

from datetime import timedelta

import pytest

from windlass.core.breaker import BreakerSpec
from windlass.core.cadence import EPOCH
from windlass.core.job import Slice, Slices
from windlass.errors import BreakerOpen, InvalidInput


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"name": ""}, "breaker"),
        ({"name": "x", "threshold": 0}, "threshold"),
        ({"name": "x", "open_for": timedelta()}, "open_for"),
    ],
)
def test_a_breaker_that_could_never_open_or_close_is_refused(options: dict[str, object], field: str) -> None:
    with pytest.raises(InvalidInput, match=f"^{field}: "):
        BreakerSpec(**options)  # type: ignore[arg-type]


def test_slices_know_which_of_them_wait_for_a_probe() -> None:
    free, first, second = (Slice("l", "t", 0, EPOCH, breaker) for breaker in (None, "b", "a"))
    found = Slices(1, (first, free, second, first))
    assert found.claimable == (free,)
    assert found.breakers == ("b", "a")


def test_an_open_breaker_says_when_to_ask_again() -> None:
    error = BreakerOpen("mail", EPOCH)
    assert (error.name, error.probe_at) == ("mail", EPOCH)
    assert str(error) == "breaker 'mail' is open; ask again at 1970-01-01T00:00:00+00:00"
