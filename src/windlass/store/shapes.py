"""The shapes of every query's answer, for SQLite, which has neither instants nor truth values."""

from __future__ import annotations

from windlass.store import rows
from windlass.store.calls import breakers

SHAPES: dict[str, rows.Shape] = {
    **rows.SHAPES,
    **breakers.SHAPES,
}
