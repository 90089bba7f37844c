"""How many there are, counted until it no longer matters."""

from __future__ import annotations

from typing import NamedTuple

MOST_COUNTED = 10_000


class CappedCount(NamedTuple):
    """A total; one that is not exact says that there are at least so many."""

    total: int
    is_exact: bool
