"""Keeps a trouble that lasts from filling the log."""

from __future__ import annotations

from collections.abc import Callable

_QUIET_S = 60.0


class LogThrottle:
    """Lets a subject be spoken of once a minute."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        """Count time by a steady counter."""
        self._monotonic = monotonic
        self._spoken: dict[str, float] = {}

    def lets(self, subject: str) -> bool:
        """Whether it is time to speak of this, which then counts as done."""
        now = self._monotonic()
        if now - self._spoken.get(subject, -_QUIET_S) < _QUIET_S:
            return False
        self._spoken[subject] = now
        return True
