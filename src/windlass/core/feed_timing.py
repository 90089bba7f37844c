"""When a feed is fetched again: what its server and its publisher ask for, within our bounds."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from random import Random
from typing import NamedTuple

from windlass.core.feed import BACKOFF, DEFAULT_WAIT, LONGEST_WAIT
from windlass.core.http_time import read_date, read_number, read_seconds

FLOOR = timedelta(minutes=60)
SPREAD = 0.1
"""How much longer than asked for a wait may become, so that feeds subscribed together do not stay together."""
CACHE_FLOOR = timedelta(minutes=10)
_DAY = timedelta(days=1)
_PERIODS = {
    "hourly": timedelta(hours=1),
    "daily": _DAY,
    "weekly": 7 * _DAY,
    "monthly": 30 * _DAY,
    "yearly": 365 * _DAY,
}
_NO_CHANCE = Random(0)  # noqa: S311 - asked for by the policy, which has no jitter


class Hints(NamedTuple):
    """How long a feed need not be fetched, as server and publisher ask."""

    cache: timedelta | None = None
    """What the answer's cache headers allow."""
    feed: timedelta | None = None
    """What the document itself asks for: ttl, or the syndication module."""
    retry_after: timedelta | None = None


def wait_after_success(hints: Hints) -> timedelta:
    """Choose the wait: the server's value overrides the publisher's, and a Retry-After may only lengthen it."""
    if hints.cache is not None:
        wait = max(hints.cache, CACHE_FLOOR)
    elif hints.feed is not None:
        wait = max(hints.feed, FLOOR)
    else:
        wait = DEFAULT_WAIT
    return min(max(wait, hints.retry_after or wait), LONGEST_WAIT)


def spread(wait: timedelta, rng: Random) -> timedelta:
    """Lengthen a wait by chance; no server is asked earlier than it allows."""
    return min(wait * (1 + rng.uniform(0, SPREAD)), LONGEST_WAIT)


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
        lifetime = read_seconds(directives["max-age"])
    else:
        expires_at = read_date(headers.get("expires"))
        lifetime = None if expires_at is None else expires_at - (read_date(headers.get("date")) or now)
    if lifetime is None or lifetime <= timedelta():
        return None
    return max(lifetime - (read_seconds(headers.get("age", "")) or timedelta()), timedelta())


def feed_hint(ttl: str | None, period: str | None = None, frequency: str | None = None) -> timedelta | None:
    """Read what a document asks for: ttl in minutes, or so many updates in a period."""
    minutes = read_number(ttl)
    if minutes:
        return min(minutes, 10**6) * timedelta(minutes=1)
    if period is None and frequency is None:
        return None
    length = _PERIODS.get((period or "daily").strip().lower())
    return None if length is None else length / min(read_number(frequency) or 1, 10**6)


def _directives(text: str) -> dict[str, str]:
    parts = (part.partition("=") for part in text.lower().split(","))
    return {name.strip(): value.strip().strip('"') for name, _, value in parts if name.strip()}
