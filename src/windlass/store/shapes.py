"""The shapes of every query's answer, for SQLite, which has neither instants nor truth values."""

from __future__ import annotations

from windlass.store import rows
from windlass.store.calls import (
    audit,
    breakers,
    case,
    chores,
    endings,
    gates,
    items,
    letters,
    report,
    retention,
    settings,
    sources,
    tasks,
    workers,
)

SHAPES: dict[str, rows.Shape] = {
    **rows.SHAPES,
    **audit.SHAPES,
    **breakers.SHAPES,
    **case.SHAPES,
    **chores.SHAPES,
    **endings.SHAPES,
    **gates.SHAPES,
    **items.SHAPES,
    **letters.SHAPES,
    **report.SHAPES,
    **retention.SHAPES,
    **settings.SHAPES,
    **sources.SHAPES,
    **tasks.SHAPES,
    **workers.SHAPES,
}
