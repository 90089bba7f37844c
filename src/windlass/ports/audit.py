"""The audit log."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Protocol

from windlass.core.audit import ALL, AuditEntry, AuditFilter, Break, Deed, Link
from windlass.core.tally import Tally


class Audit(Protocol):
    """Who did what; lines are added, chained once, and never changed."""

    async def add(self, deed: Deed) -> int:
        """Write a line that belongs to no other write, such as a refusal; returns its number."""
        ...

    async def chain(self, limit: int = 500) -> tuple[int, Link]:
        """Chain lines to those before them; returns how many, and how far the chain goes now."""
        ...

    async def verify(self, head: Link | None = None) -> Sequence[Break]:
        """Read the whole chain and name every line that was edited, moved or deleted."""
        ...

    async def prune_refusals(self, keep: timedelta, *, limit: int = 500) -> int:
        """Delete old lines about refusals, leaving one that closes the gaps in the chain; returns how many."""
        ...

    async def list(self, wanted: AuditFilter = ALL, *, before: int = 2**63 - 1, limit: int = 500) -> Sequence[AuditEntry]:
        """Read lines, newest first, page by page."""
        ...

    async def count(self, wanted: AuditFilter = ALL) -> Tally:
        """Count lines, up to a bound."""
        ...
