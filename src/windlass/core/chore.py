"""Upkeep that one instance of many does for each interval."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from windlass.core.record import record

CHORES = frozenset(
    {
        "age",
        "alerts",
        "canaries",
        "chain-audit",
        "fold",
        "promote",
        "prune",
        "prune-breaker-events",
        "prune-logs",
        "prune-minutes",
        "prune-refusals",
        "prune-signatures",
        "prune-workers",
        "reclaim",
        "sample",
        "spawn",
    }
)
"""Every chore of the upkeep; each may be paused before it was ever due."""


class ChorePermit(NamedTuple):
    """The right to do a chore once; `cursor` is where the last one left off."""

    chore: str
    version: int
    cursor: str | None
    last_rows: int | None = None
    last_error: str | None = None

    @property
    def is_uneventful(self) -> bool:
        """Whether the last round is recorded as one that found nothing to do."""
        return self.last_rows == 0 and self.last_error is None and self.cursor is None


class Swept(NamedTuple):
    """How many rows a part of a pass changed, and where the next part goes on; without a cursor the pass is over."""

    rows: int
    cursor: str | None = None


@record
class Chore:
    """A chore and how it went the last time."""

    name: str
    version: int
    due_at: datetime | None
    paused_at: datetime | None
    last_run_at: datetime | None
    last_rows: int | None
    last_duration_ms: int | None
    last_error: str | None
    worker: str | None
    cursor: str | None
