"""What a bulk did."""

from __future__ import annotations

from typing import NamedTuple


class Bulk(NamedTuple):
    """How many a filter matched when their turn came, and what became of them; a dry run only matches."""

    matched: int = 0
    changed: int = 0
    refused: int = 0

    def plus(self, other: Bulk) -> Bulk:
        """Add the counts of another batch."""
        return Bulk(self.matched + other.matched, self.changed + other.changed, self.refused + other.refused)
