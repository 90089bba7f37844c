"""The deadline of an orderly stop."""

from __future__ import annotations

from datetime import timedelta

AFTER_GRACE_S = 4.5
"""How long the orderly end may take beyond the grace."""
AFTER_HURRY_S = 1.0
"""How long it may take after a second signal."""


class Deadline:
    """When an end has to be over: the first signal starts the time, a further one cuts it short."""

    def __init__(self, grace: timedelta) -> None:
        """Leave so much time for what runs."""
        self._within_s = grace.total_seconds() + AFTER_GRACE_S
        self.at: float | None = None

    def note_signal(self, now: float) -> None:
        """Note that a signal came."""
        self.at = now + self._within_s if self.at is None else min(self.at, now + AFTER_HURRY_S)
