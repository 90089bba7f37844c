from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.core.cadence import Every, Recurrence
from windlass.core.job import Edit, NewJob
from windlass.errors import InvalidInput

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
HOURLY = Recurrence(cadence=Every(timedelta(hours=1)))
INT32 = 2**31 - 1
INT64 = 2**63 - 1

# Field and its greatest length.
TEXTS = {
    "task": 200,
    "lane": 200,
    "name": 255,
    "unique_key": 1000,
    "child_key": 1000,
    "subject": 1000,
    "correlation_id": 1000,
    "collection": 200,
    "description": 4000,
    "created_by": 200,
    "declared_by": 200,
}
RANGES = {
    "priority": (-INT32 - 1, INT32),
    "max_attempts": (1, 1_000_000),
    "parent_id": (1, INT64),
    "target_count": (0, INT64),
}
ENDS = [(field, end) for field, ends in RANGES.items() for end in ends]
BEYOND = [(field, value) for field, (low, high) in RANGES.items() for value in (low - 1, high + 1)]
BAD_TEXTS = {
    "empty": "",
    "NUL": "a\0b",
    "lone high surrogate": "a\ud800",
    "lone low surrogate": "\udfffa",
    "bytes": b"crawl",
    "number": 5,
    "list": ["crawl"],
}


def a_job(**given_values: Any) -> NewJob:
    usual: dict[str, Any] = {"task": "crawl", "recurrence": HOURLY}
    return NewJob(**usual | given_values)


def refusal(**given_values: Any) -> InvalidInput:
    """Give the error a job with these values is refused with."""
    with pytest.raises(InvalidInput) as caught:
        a_job(**given_values)
    return caught.value


def edit_refusal(**given_values: Any) -> InvalidInput:
    with pytest.raises(InvalidInput) as caught:
        Edit(**given_values)
    return caught.value


def test_a_task_alone_makes_a_job() -> None:
    job = NewJob(task="crawl")
    assert (job.lane, job.payload, job.priority, job.max_attempts, job.retry.profile) == ("default", "{}", 0, None, "task")


@pytest.mark.parametrize("field", TEXTS)
@pytest.mark.parametrize("kind", BAD_TEXTS)
def test_a_bad_text_is_refused_by_the_name_of_its_field(field: str, kind: str) -> None:
    error = refusal(**{field: BAD_TEXTS[kind]})
    assert (error.field, error.value) == (field, BAD_TEXTS[kind])
    assert str(error).startswith(f"{field}: must ")


@pytest.mark.parametrize(("field", "limit"), TEXTS.items())
def test_a_text_may_be_as_long_as_its_limit_and_no_longer(field: str, limit: int) -> None:
    assert getattr(a_job(**{field: "é" * limit}), field) == "é" * limit
    assert refusal(**{field: "é" * (limit + 1)}).field == field


def test_a_lane_of_300_characters_is_refused_with_its_limit() -> None:
    assert "lane: must be a text of 1 to 200 characters" in str(refusal(lane="x" * 300))


@pytest.mark.parametrize("field", ["task", "lane"])
def test_a_text_that_every_job_has_cannot_be_absent(field: str) -> None:
    assert refusal(**{field: None}).field == field


@pytest.mark.parametrize("text", ["naïve", "日本語", "\U0001f577", "two\nlines", "a\tb", " ", "\u200b", "'; drop table jobs; --"])
def test_unusual_text_that_both_databases_hold_is_taken(text: str) -> None:
    assert a_job(task=text, subject=text).subject == text


@given(st.text(alphabet=st.characters(exclude_categories=()), max_size=250))
def test_a_task_that_is_taken_can_be_stored(text: str) -> None:
    try:
        job = NewJob(task=text)
    except InvalidInput as error:
        assert error.field == "task"  # noqa: PT017 - either way out is right, and each has its own promise
    else:
        assert 1 <= len(job.task) <= 200
        assert b"\0" not in job.task.encode()


@pytest.mark.parametrize(("field", "value"), ENDS)
def test_a_number_at_either_end_of_its_range_is_taken(field: str, value: int) -> None:
    assert getattr(a_job(**{field: value}), field) == value


@pytest.mark.parametrize(("field", "value"), BEYOND)
def test_a_number_out_of_range_is_refused_by_name(field: str, value: int) -> None:
    error = refusal(**{field: value})
    assert (error.field, error.value) == (field, value)


@pytest.mark.parametrize("field", RANGES)
@pytest.mark.parametrize("value", [True, False, 1.0, "1", b"1", float("nan")])
def test_what_only_looks_like_a_whole_number_is_refused(field: str, value: object) -> None:
    assert refusal(**{field: value}).field == field


def test_no_attempts_at_all_is_refused() -> None:
    assert "max_attempts: must be a whole number between 1 and" in str(refusal(max_attempts=0))


def test_a_due_time_needs_a_time_zone() -> None:
    assert str(refusal(run_at=NOON.replace(tzinfo=None))).startswith("run_at: must carry a time zone")


def test_a_due_time_may_be_in_any_time_zone() -> None:
    local = NOON.astimezone(timezone(timedelta(hours=5, minutes=45)))
    assert a_job(run_at=local).run_at == NOON


@pytest.mark.parametrize("year", [1, 1969, 9001, 9999])
def test_a_due_time_that_a_database_cannot_hold_is_refused(year: int) -> None:
    assert refusal(run_at=NOON.replace(year=year)).field == "run_at"


@pytest.mark.parametrize("year", [1970, 9000])
def test_a_due_time_at_the_edge_of_the_calendar_is_taken(year: int) -> None:
    assert a_job(run_at=NOON.replace(year=year)).run_at == NOON.replace(year=year)


def test_a_due_time_and_a_delay_together_are_refused() -> None:
    assert "delay: give run_at or delay, not both" in str(refusal(run_at=NOON, delay=timedelta(seconds=5)))


@pytest.mark.parametrize("delay", [timedelta(microseconds=-1), timedelta(days=-1), timedelta.min, timedelta.max])
def test_a_delay_out_of_range_is_refused(delay: timedelta) -> None:
    error = refusal(delay=delay)
    assert (error.field, error.value) == ("delay", delay)


def test_a_delay_of_zero_is_taken() -> None:
    assert a_job(delay=timedelta()).delay == timedelta()


@pytest.mark.parametrize("timeout", [timedelta(), timedelta(seconds=-1), timedelta.max])
def test_a_timeout_out_of_range_is_refused(timeout: timedelta) -> None:
    assert refusal(timeout=timeout).field == "timeout"


@pytest.mark.parametrize("field", ["run_at", "delay", "timeout"])
def test_a_time_of_another_type_is_refused_by_name(field: str) -> None:
    assert refusal(**{field: "tomorrow"}).field == field


def test_only_a_recurring_job_has_a_name() -> None:
    assert refusal(name="nightly", recurrence=None).field == "name"


def test_only_a_recurring_job_spawns() -> None:
    assert refusal(spawn=True, recurrence=None).field == "spawn"


def test_a_recurring_job_may_have_a_name_and_spawn() -> None:
    job = a_job(name="nightly", spawn=True)
    assert (job.name, job.spawn) == ("nightly", True)


def test_an_edit_of_nothing_is_allowed() -> None:
    assert Edit() == Edit(payload=None)


@pytest.mark.parametrize(("field", "value"), [(field, value) for field, value in BEYOND if field in {"priority", "max_attempts"}])
def test_an_edit_refuses_a_number_out_of_range_by_name(field: str, value: int) -> None:
    error = edit_refusal(**{field: value})
    assert (error.field, error.value) == (field, value)


@pytest.mark.parametrize("field", ["priority", "max_attempts"])
@pytest.mark.parametrize("value", [True, 1.0, "1"])
def test_an_edit_refuses_what_only_looks_like_a_whole_number(field: str, value: object) -> None:
    assert edit_refusal(**{field: value}).field == field


@pytest.mark.parametrize("given_values", [{"recurrence": HOURLY}, {"next_at": NOON}])
def test_an_edit_gives_a_cadence_and_its_next_time_together_or_neither(given_values: dict[str, Any]) -> None:
    assert edit_refusal(**given_values).field == "next_at"


def test_an_edit_of_the_cadence_with_its_next_time_is_taken() -> None:
    assert Edit(recurrence=HOURLY, next_at=NOON).next_at == NOON


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("timeout", timedelta()),
        ("timeout", timedelta(seconds=-1)),
        ("timeout", timedelta.max),
        ("description", "a\0b"),
        ("description", "\ud800"),
        ("description", "x" * 4001),
        ("next_at", NOON.replace(tzinfo=None)),
        ("next_at", NOON.replace(year=9999)),
    ],
)
def test_an_edit_refuses_what_a_new_job_refuses(field: str, value: object) -> None:
    given_values = {field: value} | ({"recurrence": HOURLY} if field == "next_at" else {})
    assert edit_refusal(**given_values).field == field
