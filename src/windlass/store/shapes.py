"""Which columns of every query are instants and truth values."""

from __future__ import annotations

from windlass.store import rows
from windlass.store.calls import letters, lists, related, runs

SHAPES = {
    **rows.SHAPES,
    **letters.SHAPES,
    **lists.SHAPES,
    **related.SHAPES,
    **runs.SHAPES,
}
