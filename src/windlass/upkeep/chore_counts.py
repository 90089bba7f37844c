"""What a chore that every process does has come to in this one."""

from __future__ import annotations

from datetime import timedelta

from windlass.upkeep.duty import Round


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
        """Remember what went wrong last."""
        self._error = f"{type(error).__name__}: {error}"

    async def report(self, _cursor: str | None) -> Round:
        """Return what was done since the last report, how long the last round took, and its error."""
        rows, self._rows = self._rows, 0
        return Round(rows, took=self._took, error=self._error)
