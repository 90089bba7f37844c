"""Log lines that must not fill the disk."""

from __future__ import annotations

import time
from collections.abc import Callable


class Rarely:
    """Whether it is time to log something again that may happen very often."""

    def __init__(self, every_s: float, monotonic: Callable[[], float] = time.monotonic) -> None:
        """Begin with a line at once."""
        self._every_s = every_s
        self._monotonic = monotonic
        self._next = 0.0

    def is_due(self) -> bool:
        """Whether the last time was long enough ago."""
        now = self._monotonic()
        if now < self._next:
            return False
        self._next = now + self._every_s
        return True
