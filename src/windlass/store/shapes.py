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
    letter_pages,
    letters,
    lists,
    recurrence,
    related,
    report,
    retention,
    runs,
    sessions,
    settings,
    sources,
    tasks,
    tokens,
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
    **letter_pages.SHAPES,
    **letters.SHAPES,
    **lists.SHAPES,
    **recurrence.SHAPES,
    **related.SHAPES,
    **report.SHAPES,
    **retention.SHAPES,
    **runs.SHAPES,
    **sessions.SHAPES,
    **settings.SHAPES,
    **sources.SHAPES,
    **tasks.SHAPES,
    **tokens.SHAPES,
    **workers.SHAPES,
}
