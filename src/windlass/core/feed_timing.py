"""When a feed is fetched again: what its server and its publisher ask for, within our bounds."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from random import Random
from typing import NamedTuple

from windlass.core.feed import BACKOFF, DEFAULT_WAIT, LONGEST_WAIT

FLOOR = timedelta(minutes=60)
CACHE_FLOOR = timedelta(minutes=10)
_DAY = timedelta(days=1)
_PERIODS = {
    "hourly": timedelta(hours=1),
    "daily": _DAY,
    "weekly": 7 * _DAY,
    "monthly": 30 * _DAY,
    "yearly": 365 * _DAY,
}
_NUMBER = re.compile(r"\d{1,18}")
_NO_CHANCE = Random(0)  # noqa: S311 - asked for by the policy, which has no jitter


class Hints(NamedTuple):
    """How long a feed may be left alone, by each who has a word in it."""

    cache: timedelta | None = None
    """What the answer's cache headers allow."""
    feed: timedelta | None = None
    """What the document itself says: ttl, or the syndication module."""
    retry_after: timedelta | None = None


def wait_after_success(hints: Hints) -> timedelta:
    """Choose the wait: the server's word counts before the publisher's, and a Retry-After may only lengthen it."""
    if hints.cache is not None:
        wait = max(hints.cache, CACHE_FLOOR)
    elif hints.feed is not None:
        wait = max(hints.feed, FLOOR)
    else:
        wait = DEFAULT_WAIT
    return min(max(wait, hints.retry_after or wait), LONGEST_WAIT)


def wait_after_failure(failures: int, retry_after: timedelta | None = None) -> timedelta:
    """Choose the wait after `failures` in a row: 60 minutes, doubled each time; a Retry-After may only lengthen it."""
    wait = BACKOFF.delay(failures, _NO_CHANCE)
    return min(max(wait, retry_after or wait), LONGEST_WAIT)


def cache_hint(headers: Mapping[str, str], now: datetime) -> timedelta | None:
    """Read how long an answer stays fresh; one that promises nothing (`no-cache`, `max-age=0`) gives no hint."""
    directives = _directives(headers.get("cache-control", ""))
    if "no-cache" in directives or "no-store" in directives:
        return None
    if "max-age" in directives:
        lifetime = _seconds(directives["max-age"])
    else:
        expires_at = _date(headers.get("expires"))
        lifetime = None if expires_at is None else expires_at - (_date(headers.get("date")) or now)
    if lifetime is None or lifetime <= timedelta():
        return None
    return max(lifetime - (_seconds(headers.get("age", "")) or timedelta()), timedelta())


def retry_hint(headers: Mapping[str, str], now: datetime) -> timedelta | None:
    """Read Retry-After: seconds, or a date."""
    given = headers.get("retry-after", "").strip()
    seconds = _seconds(given)
    if seconds is not None:
        return seconds
    at = _date(given)
    return None if at is None else max(at - now, timedelta())


def feed_hint(ttl: str | None, period: str | None = None, frequency: str | None = None) -> timedelta | None:
    """Read what a document says of itself: ttl in minutes, or so many updates in a period."""
    minutes = _number(ttl)
    if minutes:
        return min(minutes, 10**6) * timedelta(minutes=1)
    if period is None and frequency is None:
        return None
    length = _PERIODS.get((period or "daily").strip().lower())
    return None if length is None else length / min(_number(frequency) or 1, 10**6)


def _directives(text: str) -> dict[str, str]:
    parts = (part.partition("=") for part in text.lower().split(","))
    return {name.strip(): value.strip().strip('"') for name, _, value in parts if name.strip()}


def _number(text: str | None) -> int | None:
    found = _NUMBER.fullmatch((text or "").strip())
    return int(found[0]) if found else None


def _seconds(text: str) -> timedelta | None:
    number = _number(text)
    # A hundred years are as good as any longer time, and can be added to a date.
    return None if number is None else timedelta(seconds=min(number, 3_153_600_000))


def _date(text: str | None) -> datetime | None:
    try:
        found = parsedate_to_datetime((text or "").strip())
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)
