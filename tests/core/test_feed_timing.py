"""When a feed is fetched again."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from random import Random

import pytest

from windlass.core.feed import fetch_job
from windlass.core.feed_timing import Hints, cache_hint, feed_hint, wait_after_failure, wait_after_success
from windlass.core.http_time import retry_hint

NOW = datetime(2026, 1, 15, 10, 30, tzinfo=UTC)
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


@pytest.mark.parametrize(
    ("hints", "wait"),
    [
        (Hints(), HOUR),
        (Hints(cache=MINUTE), 10 * MINUTE),
        (Hints(cache=timedelta()), 10 * MINUTE),
        (Hints(cache=30 * MINUTE), 30 * MINUTE),
        (Hints(cache=30 * DAY), 7 * DAY),
        (Hints(feed=5 * MINUTE), HOUR),
        (Hints(feed=90 * MINUTE), 90 * MINUTE),
        (Hints(feed=365 * DAY), 7 * DAY),
        (Hints(cache=30 * MINUTE, feed=DAY), 30 * MINUTE),
        (Hints(retry_after=2 * HOUR), 2 * HOUR),
        (Hints(cache=3 * HOUR, retry_after=2 * HOUR), 3 * HOUR),
        (Hints(retry_after=MINUTE), HOUR),
        (Hints(retry_after=99 * DAY), 7 * DAY),
    ],
)
def test_the_wait_keeps_its_floor_and_its_ceiling(hints: Hints, wait: timedelta) -> None:
    assert wait_after_success(hints) == wait


@pytest.mark.parametrize(
    ("failures", "retry_after", "wait"),
    [
        (1, None, HOUR),
        (2, None, 2 * HOUR),
        (3, None, 4 * HOUR),
        (8, None, 128 * HOUR),
        (9, None, 7 * DAY),
        (10_000, None, 7 * DAY),
        (1, MINUTE, HOUR),
        (1, 5 * HOUR, 5 * HOUR),
        (4, 5 * HOUR, 8 * HOUR),
        (1, 30 * DAY, 7 * DAY),
    ],
)
def test_failures_double_the_wait_and_the_server_may_lengthen_it(
    failures: int, retry_after: timedelta | None, wait: timedelta
) -> None:
    assert wait_after_failure(failures, retry_after) == wait


def test_what_the_handler_cannot_count_backs_off_alike() -> None:
    policy = fetch_job(7).retry.resolve()
    assert [policy.delay(n, Random(1)) for n in (1, 2, 9)] == [wait_after_failure(n) for n in (1, 2, 9)]


@pytest.mark.parametrize(
    ("headers", "hint"),
    [
        ({}, None),
        ({"cache-control": "max-age=900"}, 15 * MINUTE),
        ({"cache-control": 'public, Max-Age="900"'}, 15 * MINUTE),
        ({"cache-control": "max-age=900", "age": "300"}, 10 * MINUTE),
        ({"cache-control": "max-age=900", "age": "9000"}, timedelta()),
        ({"cache-control": "max-age=900", "age": "old"}, 15 * MINUTE),
        ({"cache-control": "max-age=0"}, None),
        ({"cache-control": "max-age=900, no-cache"}, None),
        ({"cache-control": "no-store"}, None),
        ({"cache-control": "max-age=soon"}, None),
        ({"cache-control": "max-age=-5"}, None),
        ({"cache-control": "max-age=" + "9" * 18}, timedelta(seconds=3_153_600_000)),
        ({"cache-control": "max-age=" + "9" * 999}, None),
        ({"expires": "Thu, 15 Jan 2026 12:30:00 GMT"}, 2 * HOUR),
        ({"expires": "Thu, 15 Jan 2026 12:30:00 GMT", "date": "Thu, 15 Jan 2026 12:00:00 GMT"}, 30 * MINUTE),
        ({"expires": "Thu, 15 Jan 2026 12:30:00"}, 2 * HOUR),
        ({"expires": "0"}, None),
        ({"expires": "Thu, 15 Jan 2025 12:30:00 GMT"}, None),
        ({"cache-control": "max-age=900", "expires": "Thu, 15 Jan 2026 12:30:00 GMT"}, 15 * MINUTE),
    ],
)
def test_cache_headers_are_read(headers: dict[str, str], hint: timedelta | None) -> None:
    assert cache_hint(headers, NOW) == hint


@pytest.mark.parametrize(
    ("given", "hint"),
    [
        ("120", 2 * MINUTE),
        ("Thu, 15 Jan 2026 11:30:00 GMT", HOUR),
        ("Thu, 15 Jan 2026 09:30:00 GMT", timedelta()),
        ("later", None),
        ("", None),
        ("-1", None),
    ],
)
def test_retry_after_is_read(given: str, hint: timedelta | None) -> None:
    assert retry_hint({"retry-after": given}, NOW) == hint


@pytest.mark.parametrize(
    ("said", "hint"),
    [
        ((None, None, None), None),
        (("90", None, None), 90 * MINUTE),
        (("0", None, None), None),
        (("often", "daily", "4"), 6 * HOUR),
        ((None, "hourly", None), HOUR),
        ((None, "weekly", "2"), 3.5 * DAY),
        ((None, None, "2"), 12 * HOUR),
        ((None, "daily", "0"), DAY),
        ((None, "sometimes", "2"), None),
    ],
)
def test_a_document_may_say_how_often_it_changes(said: tuple[str | None, str | None, str | None], hint: timedelta | None) -> None:
    assert feed_hint(*said) == hint
