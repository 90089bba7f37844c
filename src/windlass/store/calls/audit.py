"""The audit log: written in the transaction of what it tells of, chained later."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import TypeVar

from windlass.core.audit import START, Actor, AuditEntry, AuditFilter, Deed, Link, gaps_of, next_link, pruning
from windlass.core.checks import check_range, check_text
from windlass.core.job import MAX_KEY, MAX_NAME
from windlass.core.letters import Settled
from windlass.core.payload import check_stored, encode_object
from windlass.core.transitions import Moved
from windlass.store import documents
from windlass.store.calls.call import Call, Step, Steps, single
from windlass.store.calls.move import possible
from windlass.store.rows import Row, Shape

T = TypeVar("T")
_MOST_IDS = 100
MAX_LIST = 500
_ENTRY = Shape((1,))

SHAPES = dict.fromkeys(("list_audit", "list_unchained", "list_chained", "list_old_refusals", "list_prunings"), _ENTRY)
_UPKEEP = Actor("windlass")


def audited(call: Call[T], actor: Actor | None, tell: Callable[[T], Deed | None]) -> Call[T]:
    """Make a call leave a line in the audit log, in its own transaction; without an actor it stays as it is."""
    if actor is None:
        return call

    def steps() -> Steps[T]:
        answer = yield from call.steps()
        deed = tell(answer)
        if deed is not None:
            yield Step("add_audit", _params(actor, deed))
        return answer

    return replace(call, steps=steps, is_single=False)


def add(actor: Actor, deed: Deed) -> Call[int]:
    """Write a line; returns its number."""
    check_text("action", deed.action, MAX_NAME)
    check_text("outcome", deed.outcome, MAX_NAME)
    if deed.target is not None:
        check_text("target", deed.target, MAX_KEY)
    if deed.details is not None:
        check_stored(deed.details, field="details")
    return single("add_audit", _params(actor, deed), lambda found: found[0][0])


def list_entries(wanted: AuditFilter, *, before: int = 2**63 - 1, limit: int = MAX_LIST) -> Call[list[AuditEntry]]:
    """Read lines, newest first, page by page."""
    check_range("limit", limit, 1, MAX_LIST)
    return single("list_audit", {**conditions(wanted), "before": before, "limit": limit}, _entries, is_read=True)


def conditions(wanted: AuditFilter) -> dict[str, object]:
    """Give what the filter asks for as parameters."""
    return {"principal": wanted.principal, "action": wanted.action, "target": wanted.target, "since": wanted.since}


def chain(limit: int) -> Call[tuple[int, Link]]:
    """Chain lines to those before them, in the order in which they became visible; returns how many, and the last link.

    A line may commit after one with a higher number. It takes the next place then: the chain has an order of its own, so
    nobody waits for anybody.
    """
    check_range("limit", limit, 1, documents.MAX_ROWS)

    def steps() -> Steps[tuple[int, Link]]:
        yield Step("lock_chain", {})
        # Read after the lock and not with it: only a new snapshot sees what the chainer before us has committed.
        found = yield Step("last_link", {})
        last = Link._make(found[0]) if found else START
        links: list[str] = []
        for entry in _entries((yield Step("list_unchained", {"limit": limit}))):
            last = next_link(last, entry)
            links.append(f'{{"id":{entry.id},"chain":"{last.chain}","place":{last.place}}}')
        if links:
            yield Step("add_links", {"links": documents.array(links)})
        return len(links), last

    return Call(steps)


def list_chained(after: int, limit: int = MAX_LIST) -> Call[list[AuditEntry]]:
    """Read lines in the order of the chain."""
    return single("list_chained", {"after": after, "limit": limit}, _entries, is_read=True)


def prune_refusals(keep: timedelta, limit: int) -> Call[int]:
    """Delete chained refusals that are older than `keep`, and write a line that closes their gaps; returns how many."""
    check_range("limit", limit, 1, MAX_LIST)

    def steps() -> Steps[int]:
        yield Step("lock_chain", {})
        old = _entries((yield Step("list_old_refusals", {"keep_for": keep, "limit": limit})))
        if not old:
            return 0
        yield Step("delete_refusals", {"ids": documents.numbers(entry.id for entry in old)})
        yield Step("add_audit", _params(_UPKEEP, pruning(gaps_of(old), len(old))))
        return len(old)

    return Call(steps)


def list_prunings(after: int, limit: int = MAX_LIST) -> Call[list[AuditEntry]]:
    """Read the lines about prunings, oldest first."""
    return single("list_prunings", {"after": after, "limit": limit}, _entries, is_read=True)


def _entries(rows: Sequence[Row]) -> list[AuditEntry]:
    return [AuditEntry(*row) for row in rows]


def moved(answer: Moved) -> Deed:
    """Tell of an operator move: how many it changed and how many it could not."""
    ids = [job.id for job in (*answer.changed, *answer.refused)] + list(answer.missing)
    details = _details(answer, ids) | ({} if answer.target is None else {"target": answer.target})
    return Deed(
        answer.move,
        f"job:{ids[0]}" if len(ids) == 1 else "jobs",
        "done" if answer.changed else "refused",
        encode_object(details),
    )


def settled(answer: Settled) -> Deed:
    """Tell what became of dead letters."""
    ids = [letter.id for letter in (*answer.changed, *answer.refused)] + list(answer.missing)
    return Deed(
        answer.move,
        f"letter:{ids[0]}" if len(ids) == 1 else "letters",
        "done" if answer.changed else "refused",
        encode_object(_details(answer, ids)),
    )


def _details(answer: Moved | Settled, ids: list[int]) -> dict[str, object]:
    return {
        "ids": possible(ids[:_MOST_IDS]),
        "changed": len(answer.changed),
        "refused": len(answer.refused),
        "missing": len(answer.missing),
    }


def _params(actor: Actor, deed: Deed) -> dict[str, object]:
    return {
        "principal": actor.principal,
        "request_id": actor.request_id,
        "action": deed.action,
        "target": deed.target,
        "outcome": deed.outcome,
        "details": deed.details,
    }
