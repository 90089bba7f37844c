"""The audit log: written in the transaction of what it records, chained later."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TypeVar

from windlass.core.audit import ALL, START, Actor, AuditEntry, AuditFilter, ChainLink, Deed, gaps_of, next_link, pruning
from windlass.core.checks import check_range, check_text
from windlass.core.job import MAX_KEY, MAX_NAME
from windlass.core.page import CappedCount
from windlass.core.payload import check_stored
from windlass.errors import InvalidInput
from windlass.store import batches
from windlass.store.calls.call import Call, Means, Step, Steps, add_audit, single
from windlass.store.calls.reads import count_capped
from windlass.store.rows import SHAPES, Row, Shape

T = TypeVar("T")
MAX_LIST = 500
_ENTRY = Shape.of(AuditEntry)

SHAPES |= dict.fromkeys(("list_audit", "list_unchained", "list_chained", "list_old_refusals", "list_prunings"), _ENTRY)
_UPKEEP = Actor("windlass")


def add(deed: Deed) -> Call[int]:
    """Write a line that belongs to no other write, such as a refusal; returns its number."""
    check_text("action", deed.action, MAX_NAME)
    check_text("outcome", deed.outcome, MAX_NAME)
    if deed.target is not None:
        check_text("target", deed.target, MAX_KEY)
    if deed.details is not None:
        check_stored(deed.details, field="details")

    def steps(means: Means) -> Steps[int]:
        if means.actor is None:
            raise InvalidInput("actor", None, "a principal is needed: use store.acting(actor).audit")
        [[number]] = yield add_audit(means.actor, deed)
        return int(number)

    return Call(steps, is_single=True)


def list_entries(wanted: AuditFilter = ALL, *, before: int = 2**63 - 1, limit: int = MAX_LIST) -> Call[list[AuditEntry]]:
    """Read lines, newest first, page by page."""
    check_range("limit", limit, 1, MAX_LIST)
    return single("list_audit", {**conditions(wanted), "before": before, "limit": limit}, _entries, is_read=True)


def conditions(wanted: AuditFilter) -> dict[str, object]:
    """Return what the filter asks for as parameters."""
    return {"principal": wanted.principal, "action": wanted.action, "target": wanted.target, "since": wanted.since}


def chain(limit: int = MAX_LIST) -> Call[tuple[int, ChainLink]]:
    """Chain lines to those before them, in the order in which they became visible; returns how many, and the last link.

    A line may commit after one with a higher number. It takes the next place then: the chain has an order of its own, so
    no call waits for another.
    """
    check_range("limit", limit, 1, batches.MAX_ROWS)

    def steps(_: Means) -> Steps[tuple[int, ChainLink]]:
        yield Step("lock_chain", {})
        # Read after the lock and not with it: only a new snapshot sees what the chainer before us has committed.
        found = yield Step("last_link", {})
        last = ChainLink._make(found[0]) if found else START
        links: list[str] = []
        for entry in _entries((yield Step("list_unchained", {"limit": limit}))):
            last = next_link(last, entry)
            links.append(f'{{"id":{entry.id},"chain":"{last.chain}","place":{last.place}}}')
        if links:
            yield Step("add_links", {"links": batches.array(links)})
        return len(links), last

    return Call(steps)


def list_chained(after: int, limit: int = MAX_LIST) -> Call[list[AuditEntry]]:
    """Read lines in the order of the chain."""
    return single("list_chained", {"after": after, "limit": limit}, _entries, is_read=True)


def prune_refusals(keep: timedelta, *, limit: int = MAX_LIST) -> Call[int]:
    """Delete chained refusals that are older than `keep`, and write a line that closes their gaps; returns how many."""
    check_range("limit", limit, 1, MAX_LIST)

    def steps(_: Means) -> Steps[int]:
        yield Step("lock_chain", {})
        old = _entries((yield Step("list_old_refusals", {"keep_for": keep, "limit": limit})))
        if not old:
            return 0
        yield Step("delete_refusals", {"ids": batches.numbers(entry.id for entry in old)})
        yield add_audit(_UPKEEP, pruning(gaps_of(old), len(old)))
        return len(old)

    return Call(steps)


def list_prunings(after: int, limit: int = MAX_LIST) -> Call[list[AuditEntry]]:
    """Read the lines about prunings, oldest first."""
    return single("list_prunings", {"after": after, "limit": limit}, _entries, is_read=True)


def count(wanted: AuditFilter = ALL) -> Call[CappedCount]:
    """Count lines, up to a bound."""
    return count_capped("count_audit", conditions(wanted))


def _entries(rows: Sequence[Row]) -> list[AuditEntry]:
    return [AuditEntry(*row) for row in rows]
