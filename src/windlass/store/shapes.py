"""Which columns of every query's answer are instants and truth values."""

from __future__ import annotations

from windlass.store import rows
from windlass.store.calls import audit, chores, gates, retention, tasks, workers

SHAPES: dict[str, rows.Shape] = {
    **rows.SHAPES,
    **audit.SHAPES,
    **chores.SHAPES,
    **gates.SHAPES,
    **retention.SHAPES,
    **tasks.SHAPES,
    **workers.SHAPES,
}
