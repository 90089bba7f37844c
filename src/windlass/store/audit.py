"""The audit log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from windlass.core.audit import START, Break, ChainLink, Gap, breaks, gaps_in, link_of
from windlass.core.blocking import twin_of
from windlass.store.calls import audit
from windlass.store.noun import Noun, verb


class Audit(Noun):
    """The audit log; lines are added, chained once, and never changed."""

    add, add_sync = verb(audit.add)
    chain, chain_sync = verb(audit.chain)
    prune_refusals, prune_refusals_sync = verb(audit.prune_refusals)
    list, list_sync = verb(audit.list_entries)
    count, count_sync = verb(audit.count)

    async def verify(self, head: ChainLink | None = None) -> Sequence[Break]:
        """Read the whole chain and name every line that was edited, moved or deleted, but for refusals that were pruned.

        Without a `head` kept elsewhere a cut of the newest lines cannot be noticed.
        """
        found: Sequence[Break] = ()
        gaps = await self._gaps()
        last, is_met = START, head is None or head == START
        is_met = is_met or any(head is not None and gap.first <= head.place <= gap.end.place for gap in gaps.values())
        while page := await self._run(audit.list_chained(last.place)):
            found = (*found, *breaks(last, page, gaps))
            is_met = is_met or any(link_of(entry) == head for entry in page)
            last = link_of(page[-1])
        if head is None or is_met:
            return found
        return (*found, Break(head.place, None, f"the chain no longer leads through place {head.place}"))

    verify_sync = twin_of(verify)

    async def _gaps(self) -> Mapping[int, Gap]:
        gaps: dict[int, Gap] = {}
        after = 0
        while page := await self._run(audit.list_prunings(after)):
            gaps |= {gap.first: gap for entry in page for gap in gaps_in(entry)}
            after = page[-1].id
        return gaps
