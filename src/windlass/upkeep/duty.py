"""A chore as the upkeep loop sees it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import NamedTuple

from windlass.core.record import record


class Round(NamedTuple):
    """What one round of a chore came to."""

    rows: int
    has_more: bool = False
    """The round ended at its bound: the next one should come soon."""
    rest: timedelta | None = None
    """How long the next one can wait, where that is not the chore's interval."""
    cursor: str | None = None
    took: timedelta | None = None
    """How long it took, where that is not how long the call lasted."""
    error: str | None = None

    @property
    def is_uneventful(self) -> bool:
        """Whether nothing was found to do."""
        return self.rows == 0 and self.error is None and self.cursor is None


@record
class Duty:
    """A chore: its name, how often it comes round, and a bounded piece of its work, given where the last one left off."""

    name: str
    every: timedelta
    work: Callable[[str | None], Awaitable[Round]]


class ChoreCounts:
    """Counts between two reports: a row written at each round would be the busiest of the database."""

    def __init__(self) -> None:
        """Start at nothing."""
        self._rows = 0
        self._took = timedelta()
        self._error: str | None = None

    def note(self, rows: int, seconds: float) -> None:
        """Count a round that went well."""
        self._rows += rows
        self._took = timedelta(seconds=seconds)
        self._error = None

    def fail(self, error: BaseException) -> None:
        """Keep the last error."""
        self._error = f"{type(error).__name__}: {error}"

    async def report(self, _cursor: str | None) -> Round:
        """Return what was done since the last report, how long the last round took, and its error."""
        rows, self._rows = self._rows, 0
        return Round(rows, took=self._took, error=self._error)
