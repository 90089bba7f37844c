from __future__ import annotations

import math
from datetime import timedelta

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from windlass.core.durations import MAX, format_duration, parse_duration
from windlass.errors import InvalidInput

DURATIONS = st.timedeltas(min_value=timedelta(), max_value=MAX)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("90", timedelta(seconds=90)),
        ("1.5", timedelta(seconds=1.5)),
        ("0", timedelta()),
        ("0s", timedelta()),
        ("30m", timedelta(minutes=30)),
        ("1h", timedelta(hours=1)),
        ("1.5h", timedelta(minutes=90)),
        (".5h", timedelta(minutes=30)),
        ("1h30m", timedelta(minutes=90)),
        ("1d12h", timedelta(hours=36)),
        ("250ms", timedelta(milliseconds=250)),
        ("7us", timedelta(microseconds=7)),
        ("7\u00b5s", timedelta(microseconds=7)),
        ("7\u03bcs", timedelta(microseconds=7)),
        ("3000ns", timedelta(microseconds=3)),
        ("36525d", MAX),
        (" 5m\n", timedelta(minutes=5)),
        (45, timedelta(seconds=45)),
        (0.25, timedelta(milliseconds=250)),
        (timedelta(days=2), timedelta(days=2)),
    ],
)
def test_reads_every_documented_form(text: str | float | timedelta, expected: timedelta) -> None:
    assert parse_duration(text) == expected


@pytest.mark.parametrize(
    ("text", "microseconds"),
    [("499ns", 0), ("500ns", 1), ("1499ns", 1), ("1500ns", 2), ("0.0000005", 1), ("0.00000049", 0), ("250ns250ns", 1)],
)
def test_rounds_below_a_microsecond_half_up(text: str, microseconds: int) -> None:
    assert parse_duration(text) == timedelta(microseconds=microseconds)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "h",
        "1x",
        "1h30",
        "30 m",
        "1h 30m",
        "1.2.3s",
        ".",
        ".s",
        "+5s",
        "1_000s",
        "1w",
        "5M",
        "1e3s",
        "1e999s",
        "nan",
        "inf",
        "٣s",
        "\uff11s",
    ],
)
def test_refuses_text_that_is_not_a_duration(text: str) -> None:
    with pytest.raises(InvalidInput):
        parse_duration(text)


@pytest.mark.parametrize("value", ["-5s", "-0.1", -1, -0.5, timedelta(seconds=-1)])
def test_refuses_negative_durations(value: str | float | timedelta) -> None:
    with pytest.raises(InvalidInput, match="negative"):
        parse_duration(value)


@pytest.mark.parametrize("value", ["36525d1us", "9" * 90 + "s", 10**12, 1e300, timedelta.max])
def test_refuses_more_than_a_hundred_years(value: str | float | timedelta) -> None:
    with pytest.raises(InvalidInput, match="longer than 100 years"):
        parse_duration(value)


@pytest.mark.parametrize("sign", [1, -1])
def test_refuses_an_integer_that_python_cannot_print(sign: int) -> None:
    with pytest.raises(InvalidInput, match="an integer of 16610 bits"):
        parse_duration(sign * 10**5000)


def test_refuses_thousands_of_digits_without_computing_them() -> None:
    with pytest.raises(InvalidInput, match="characters"):
        parse_duration("9" * 5000 + "s")


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_refuses_numbers_that_are_not_finite(value: float) -> None:
    with pytest.raises(InvalidInput, match="finite"):
        parse_duration(value)


@pytest.mark.parametrize("value", [True, None, [], b"5s"])
def test_refuses_other_types(value: object) -> None:
    with pytest.raises(InvalidInput):
        parse_duration(value)  # type: ignore[arg-type]


def test_names_the_field_the_value_and_the_bad_part() -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_duration("1h30x", field="timeout")
    assert caught.value.field == "timeout"
    assert caught.value.value == "1h30x"
    assert "'30x' at character 3 has an unknown unit" in str(caught.value)


@pytest.mark.parametrize(
    ("duration", "text"),
    [
        (timedelta(), "0s"),
        (timedelta(minutes=90), "1h30m"),
        (timedelta(seconds=1.5), "1.5s"),
        (timedelta(milliseconds=250), "250ms"),
        (timedelta(microseconds=1500), "1.5ms"),
        (timedelta(microseconds=1), "1us"),
        (timedelta(days=1, hours=12), "1d12h"),
        (timedelta(minutes=1, microseconds=1), "1m0.000001s"),
        (timedelta(hours=25, seconds=10), "1d1h10s"),
        (timedelta(seconds=-90), "-1m30s"),
    ],
)
def test_writes_the_canonical_form(duration: timedelta, text: str) -> None:
    assert format_duration(duration) == text


@given(DURATIONS)
@example(MAX)
@example(timedelta(microseconds=999_999))
def test_reads_back_what_it_writes(duration: timedelta) -> None:
    assert parse_duration(format_duration(duration)) == duration


@given(st.one_of(st.text(), st.text(alphabet="0123456789.nuµmshd-e +"), st.integers(), st.floats()))
def test_any_value_gives_a_duration_in_range_or_invalid_input(value: str | float) -> None:
    try:
        duration = parse_duration(value)
    except InvalidInput:
        return
    assert timedelta() <= duration <= MAX
