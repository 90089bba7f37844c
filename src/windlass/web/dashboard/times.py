"""How long something takes and how long ago it was, roughly, for people."""

from __future__ import annotations

from datetime import datetime, timedelta

_SECOND, _MINUTE, _HOUR, _DAY = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


def short(span: timedelta) -> str:
    """Write how long something takes, roughly."""
    if span < _SECOND:
        return f"{max(0, span // timedelta(milliseconds=1))} ms"
    if span < _MINUTE:
        return f"{span / _SECOND:.1f} s" if span < 10 * _SECOND else f"{span // _SECOND} s"
    if span < _HOUR:
        return f"{span // _MINUTE} min"
    return f"{span // _HOUR} h" if span < 2 * _DAY else f"{span // _DAY} d"


def short_ms(milliseconds: float | None) -> str:
    """Write how long so many milliseconds are; nothing is an empty text."""
    return "" if milliseconds is None else short(timedelta(milliseconds=milliseconds))


def age(since: datetime, now: datetime) -> str:
    """Write how long ago something was, in whole seconds and more."""
    passed = max(timedelta(), now - since)
    return "now" if passed < _SECOND else short(passed - passed % _SECOND).replace(".0 ", " ")


def until(at: datetime, now: datetime) -> str:
    """Write when something will be, or how long ago it was due."""
    left = at - now
    return f"in {short(left)}" if left >= _SECOND else f"{age(at, now)} ago" if left <= -_SECOND else "now"
