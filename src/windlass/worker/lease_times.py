"""Until when this process surely holds each lease, by its own counter."""

from __future__ import annotations

from collections.abc import Callable, Collection

_MARGIN = 0.1
"""The part of a lease that must be left for a job to start: a start takes a moment, and a pause may come in between."""


class Late(Exception):
    """The lease of a run may have ended before its handler was called."""


class LeaseTimes:
    """Counted from before the claim or renewal was sent, on a counter that runs on while the machine sleeps.

    All jobs of one claim share a token and are renewed together, so one entry serves them all. Safe to use from any thread.
    """

    def __init__(self, monotonic: Callable[[], float], lease_s: float) -> None:
        """Start without leases; `lease_s` is the length this process asks for."""
        self._monotonic = monotonic
        self._margin_s = lease_s * _MARGIN
        self._until: dict[int, float] = {}

    def note(self, token: int, until: float) -> None:
        """Note a lease that was granted or renewed."""
        self._until[token] = until

    def keep(self, tokens: Collection[int]) -> None:
        """Forget the leases of all other tokens."""
        # In place: another thread may note one meanwhile.
        for token in list(self._until):
            if token not in tokens:
                self._until.pop(token, None)

    def until(self, token: int) -> float:
        """Return the end of a lease; one that is not known has ended."""
        return self._until.get(token, 0.0)

    def may_start(self, token: int) -> bool:
        """Whether a job under this lease may start: no other worker can have it yet, nor soon."""
        return self._until.get(token, 0.0) - self._margin_s > self._monotonic()

    def left_to_start(self, token: int) -> float:
        """Return for how many seconds a job under this lease may still start."""
        return self._until.get(token, 0.0) - self._margin_s - self._monotonic()
