"""The shapes of every query's answer, for SQLite, which has neither instants nor truth values."""

from __future__ import annotations

from windlass.store import rows
from windlass.store.calls import breakers, case, endings, items, letters, report, settings, sources

SHAPES: dict[str, rows.Shape] = {
    **rows.SHAPES,
    **breakers.SHAPES,
    **case.SHAPES,
    **endings.SHAPES,
    **items.SHAPES,
    **letters.SHAPES,
    **report.SHAPES,
    **settings.SHAPES,
    **sources.SHAPES,
}
