"""Refuses single values, naming the field."""

from __future__ import annotations

from datetime import datetime, timedelta

from windlass.core.durations import MAX, format_duration
from windlass.errors import InvalidInput


def check_text(field: str, value: object, limit: int) -> None:
    """Refuse a text that is empty, too long or that PostgreSQL cannot hold."""
    if not isinstance(value, str) or not 1 <= len(value) <= limit:
        raise InvalidInput(field, value, f"must be a text of 1 to {limit} characters")
    if not value.isprintable():
        check_characters(field, value)


def check_characters(field: str, value: str) -> None:
    """Refuse NUL and lone surrogates, which one of the two databases would refuse later."""
    if "\0" in value:
        raise InvalidInput(field, value, "must not contain NUL")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InvalidInput(field, value, "must not contain lone surrogates") from None


def check_range(field: str, value: object, low: int, high: int) -> None:
    """Refuse what is not a whole number between `low` and `high`."""
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise InvalidInput(field, value, f"must be a whole number between {low} and {high}")


def check_instant(field: str, value: object) -> None:
    """Refuse an instant without a time zone or beyond what both databases hold."""
    if not isinstance(value, datetime):
        raise InvalidInput(field, value, "must be a datetime")
    if value.tzinfo is None:
        raise InvalidInput(field, value, "must carry a time zone")
    if not 1970 <= value.year <= 9000:  # noqa: PLR2004 - the bounds are the message
        raise InvalidInput(field, value, "must lie between the years 1970 and 9000")


def check_wait(field: str, value: object, *, least: timedelta) -> None:
    """Refuse what is not a duration between `least` and a hundred years."""
    if not isinstance(value, timedelta) or not least <= value <= MAX:
        raise InvalidInput(field, value, f"must be a duration of {format_duration(least)} to 100 years")
