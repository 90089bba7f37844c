"""The audit log: written in the transaction of what it tells of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import TypeVar

from windlass.core.audit import Actor, Deed
from windlass.core.payload import encode_object
from windlass.core.transitions import Moved
from windlass.store.calls.call import Call, Step, Steps

T = TypeVar("T")
_MOST_IDS = 100


def audited(call: Call[T], actor: Actor | None, tell: Callable[[T], Deed], now: datetime | None = None) -> Call[T]:
    """Make a call leave a line in the audit log, in its own transaction; without an actor it stays as it is."""
    if actor is None:
        return call

    def steps() -> Steps[T]:
        answer = yield from call.steps()
        yield Step("add_audit", _params(actor, tell(answer), now))
        return answer

    return replace(call, steps=steps, is_single=False)


def moved(answer: Moved) -> Deed:
    """Tell of an operator move: how many it changed and how many it could not."""
    ids = [job.id for job in (*answer.changed, *answer.refused)] + list(answer.missing)
    details = {
        "ids": ids[:_MOST_IDS],
        "changed": len(answer.changed),
        "refused": len(answer.refused),
        "missing": len(answer.missing),
    }
    return Deed(
        answer.move,
        f"job:{ids[0]}" if len(ids) == 1 else "jobs",
        "done" if answer.changed else "refused",
        encode_object(details),
    )


def _params(actor: Actor, deed: Deed, now: datetime | None) -> dict[str, object]:
    return {
        "principal": actor.principal,
        "request_id": actor.request_id,
        "action": deed.action,
        "target": deed.target,
        "outcome": deed.outcome,
        "details": deed.details,
        "now": now,
    }
