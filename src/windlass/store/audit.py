"""The audit log, for asyncio."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta

from windlass.core.audit import ALL, START, Actor, AuditEntry, AuditFilter, Break, Deed, Gap, Link, breaks, gaps_in, link_of
from windlass.core.tally import Tally
from windlass.errors import InvalidInput
from windlass.store.calls import audit, tally
from windlass.store.database import Database


class SqlAudit:
    """Who did what; lines are added, chained once, and never changed."""

    def __init__(self, database: Database, actor: Actor | None) -> None:
        """Speak to `database`; `actor` is whom new lines name."""
        self._db = database
        self._actor = actor

    async def add(self, deed: Deed) -> int:
        """Write a line that belongs to no other write, such as a refusal; returns its number."""
        if self._actor is None:
            raise InvalidInput("actor", None, "somebody must be named: use store.acting(actor).audit")
        return await self._db.run(audit.add(self._actor, deed))

    async def chain(self, limit: int = audit.MAX_LIST) -> tuple[int, Link]:
        """Chain lines to those before them; returns how many, and how far the chain goes now."""
        return await self._db.run(audit.chain(limit))

    async def verify(self, head: Link | None = None) -> Sequence[Break]:
        """Read the whole chain and name every line that was edited, moved or deleted, but for refusals that were pruned.

        Without a `head` kept elsewhere nobody can tell that the newest lines were cut off.
        """
        found: Sequence[Break] = ()
        gaps = await self._gaps()
        last, is_met = START, head is None or head == START
        is_met = is_met or any(head is not None and gap.first <= head.place <= gap.end.place for gap in gaps.values())
        while page := await self._db.run(audit.list_chained(last.place)):
            found = (*found, *breaks(last, page, gaps))
            is_met = is_met or any(link_of(entry) == head for entry in page)
            last = link_of(page[-1])
        if head is None or is_met:
            return found
        return (*found, Break(head.place, None, f"the chain no longer leads through place {head.place}"))

    async def _gaps(self) -> Mapping[int, Gap]:
        gaps: dict[int, Gap] = {}
        after = 0
        while page := await self._db.run(audit.list_prunings(after)):
            gaps |= {gap.first: gap for entry in page for gap in gaps_in(entry)}
            after = page[-1].id
        return gaps

    async def prune_refusals(self, keep: timedelta, *, limit: int = audit.MAX_LIST) -> int:
        """Delete old lines about refusals, leaving one that closes the gaps in the chain; returns how many."""
        return await self._db.run(audit.prune_refusals(keep, limit))

    async def list(
        self, wanted: AuditFilter = ALL, *, before: int = 2**63 - 1, limit: int = audit.MAX_LIST
    ) -> Sequence[AuditEntry]:
        """Read lines, newest first, page by page."""
        return await self._db.run(audit.list_entries(wanted, before=before, limit=limit))

    async def count(self, wanted: AuditFilter = ALL) -> Tally:
        """Count lines, up to a bound."""
        return await self._db.run(tally.count("count_audit", audit.conditions(wanted)))
