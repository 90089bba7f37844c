"""What a handler may raise to decide about its job."""

from __future__ import annotations

from datetime import timedelta

from windlass.core.durations import in_words, parse_duration
from windlass.errors import BreakerOpen, InvalidInput


class Signal(Exception):
    """Root of what handlers raise on purpose."""


class Retry(Signal):
    """The run failed; try again after `after` instead of the policy's delay."""

    def __init__(self, reason: str = "asked to be retried", *, after: str | float | timedelta | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.after = None if after is None else parse_duration(after, field="after")


class Snooze(Signal):
    """Not now: run again after `for_`, without using up an attempt."""

    def __init__(self, for_: str | float | timedelta) -> None:
        self.delay = parse_duration(for_, field="for_")
        super().__init__(f"snoozed for {in_words(self.delay)}")


class Discard(Signal):
    """The run failed and no retry can help: the job becomes a dead letter."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Cancel(Signal):
    """The job is not wanted any more."""

    def __init__(self, reason: str = "cancelled") -> None:
        super().__init__(reason)
        self.reason = reason


def counts_for_breaker(error: BaseException) -> bool:
    """Whether an error counts for the breaker of the service that was called.

    Snooze, Cancel and Discard do not, nor does a bad argument, a breaker that is open already, or what ends the process.
    """
    is_wish = isinstance(error, Signal) and not isinstance(error, Retry)
    return isinstance(error, Exception) and not is_wish and not isinstance(error, InvalidInput | BreakerOpen)
