"""What the SQLite adapter must know of every query's answer."""

from __future__ import annotations

from windlass.store import rows
from windlass.store.calls import endings, letters

SHAPES: dict[str, rows.Shape] = {
    **rows.SHAPES,
    **endings.SHAPES,
    **letters.SHAPES,
}
