"""Settings: bounds, whose word counts, and what they mean for retries."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from windlass.core.cadence import EPOCH
from windlass.core.retry import PROFILES
from windlass.core.settings import (
    SETTINGS,
    Origin,
    StoredSetting,
    effective,
    from_environment,
    from_table,
    is_pulled,
    profiles_with,
    read_setting,
)
from windlass.errors import ConfigError, InvalidInput


def stored(**values: str) -> list[StoredSetting]:
    return [StoredSetting(name, value, None, EPOCH) for name, value in values.items()]


@pytest.mark.parametrize(
    ("name", "low", "high", "default"),
    [
        ("LEASE_SEC_DEFAULT", 30, 600, 180),
        ("BACKOFF_BASE_SEC", 1, 3600, 30),
        ("BACKOFF_MAX_SEC", 1, 86_400, 3600),
        ("MAX_ATTEMPTS_DEFAULT", 1, 100, 5),
    ],
)
def test_numbers_keep_within_their_bounds(name: str, low: int, high: int, default: int) -> None:
    assert SETTINGS[name].default == default
    assert (read_setting(name, low), read_setting(name, str(high))) == (low, high)
    for bad in (low - 1, high + 1, str(high + 1), "many", "", None, 1.5, True, "-1", "1e2", "²", "9" * 5000):
        with pytest.raises(InvalidInput) as refused:
            read_setting(name, bad)
        assert (refused.value.field, refused.value.value) in {(name, bad), (name, high + 1)}


@pytest.mark.parametrize("value", ["fastest", "", 1, None, ["fifo"]])
def test_the_order_of_picking_is_one_of_four_words(value: Any) -> None:
    assert [read_setting("PICK_ORDER", word) for word in ("fifo", "newest", "random", "fair")]
    with pytest.raises(InvalidInput, match=r"PICK_ORDER: must be one of fifo, newest, random, fair"):
        read_setting("PICK_ORDER", value)


def test_an_unknown_setting_is_refused_with_its_value() -> None:
    with pytest.raises(InvalidInput, match=r"COLOUR: is not a setting.*got 'blue'"):
        read_setting("COLOUR", "blue")


def test_the_table_beats_the_environment_and_that_the_default() -> None:
    env = {"BACKOFF_BASE_SEC": "10", "MAX_ATTEMPTS_DEFAULT": "7", "PATH": "/bin", "LEASE_SEC_DEFAULT": ""}
    found = effective(stored(BACKOFF_BASE_SEC="20"), env)
    assert found["BACKOFF_BASE_SEC"][1:] == (20, Origin.DATABASE)
    assert found["MAX_ATTEMPTS_DEFAULT"][1:] == (7, Origin.ENVIRONMENT)
    assert found["LEASE_SEC_DEFAULT"][1:] == (180, Origin.DEFAULT)
    assert list(found) == list(SETTINGS)


def test_a_bad_environment_variable_is_named() -> None:
    with pytest.raises(ConfigError, match=r"BACKOFF_BASE_SEC.*'soon'"):
        from_environment({"BACKOFF_BASE_SEC": "soon"})


def test_rows_of_another_version_are_passed_over() -> None:
    assert from_table(stored(COLOUR="blue", BACKOFF_BASE_SEC="a while", BACKOFF_MAX_SEC="60")) == {"BACKOFF_MAX_SEC": 60}


def test_settings_replace_only_what_they_speak_of() -> None:
    assert profiles_with({}) == PROFILES
    changed = profiles_with({"BACKOFF_BASE_SEC": 2, "MAX_ATTEMPTS_DEFAULT": 9})
    assert (changed["pull"].policy.base, changed["pull"].policy.cap) == (timedelta(seconds=2), timedelta(hours=1))
    assert changed["pull"].max_attempts == 9
    assert changed["task"] is PROFILES["task"]
    again = profiles_with({"BACKOFF_MAX_SEC": 60}, changed)
    assert (again["pull"].policy.base, again["pull"].policy.cap) == (timedelta(seconds=2), timedelta(minutes=1))


@pytest.mark.parametrize(
    ("retry", "is_it"), [("pull", True), ('{"profile":"pull","jitter":0.0}', True), ("task", False), ("x", False)]
)
def test_only_pulled_jobs_lean_on_the_settings(retry: str, is_it: bool) -> None:  # noqa: FBT001 - a column of the table above
    assert is_pulled(retry) is is_it
