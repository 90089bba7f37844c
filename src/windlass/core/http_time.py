"""Times in the headers of an answer, as HTTP writes them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

_NUMBER = re.compile(r"[0-9]{1,100}")
# A hundred years are as good as any longer time, and can be added to a date.
_LONGEST_S = 3_153_600_000


def read_number(text: str | None) -> int | None:
    """Read a whole number; anything else is none."""
    found = _NUMBER.fullmatch((text or "").strip())
    return int(found[0]) if found else None


def read_seconds(text: str | None) -> timedelta | None:
    """Read a number of seconds."""
    number = read_number(text)
    return None if number is None else timedelta(seconds=min(number, _LONGEST_S))


def read_date(text: str | None) -> datetime | None:
    """Read a date; one without a zone is in UTC."""
    try:
        found = parsedate_to_datetime((text or "").strip())
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def retry_hint(headers: Mapping[str, str], now: datetime) -> timedelta | None:
    """Read Retry-After: seconds, or a date."""
    given = headers.get("retry-after")
    seconds = read_seconds(given)
    if seconds is not None:
        return seconds
    at = read_date(given)
    return None if at is None else max(at - now, timedelta())
