"""Chores by compare-and-set: one instance for each interval."""

from __future__ import annotations

from datetime import timedelta

from windlass.core.audit import Deed
from windlass.core.checks import check_range, check_text, check_wait
from windlass.core.chore import CHORES, Chore, ChorePermit
from windlass.core.job import MAX_NAME, MAX_TEXT
from windlass.core.payload import sanitise_text
from windlass.errors import ChoreNotFound
from windlass.store.calls.call import Call, Means, Step, Steps, single
from windlass.store.calls.work import MAX_CURSOR


def due(chore: str, every: timedelta, worker: str) -> Call[ChorePermit | None]:
    """Take the chore if its interval has passed since it was last taken, also where that permit was never ended."""
    check_text("chore", chore, MAX_NAME)
    check_text("worker", worker, MAX_NAME)
    check_wait("every", every, least=timedelta(milliseconds=1))
    params = {"chore": chore, "every": every, "worker": worker}
    return single("take_chore", params, lambda found: ChorePermit._make(found[0]) if found else None, is_engine=True)


def done(
    permit: ChorePermit,
    rows: int,
    duration: timedelta,
    *,
    error: str | None = None,
    cursor: str | None = None,
    again: timedelta | None = None,
) -> Call[bool]:
    """Record how a chore went and where the next one goes on; False when another instance took it meanwhile.

    One with more to do than its round may do comes `again` sooner than after its interval.
    """
    check_range("rows", rows, 0, 2**63 - 1)
    check_wait("duration", duration, least=timedelta())
    if again is not None:
        check_wait("again", again, least=timedelta())
    params = {
        "chore": permit.chore,
        "version": permit.version,
        "rows": rows,
        "duration_ms": duration // timedelta(milliseconds=1),
        "error": None if error is None else sanitise_text(error, MAX_TEXT),
        "cursor": None if cursor is None else sanitise_text(cursor, MAX_CURSOR),
        "again": again,
    }
    return single("end_chore", params, bool, is_engine=True)


def list_chores() -> Call[list[Chore]]:
    """Read every chore that was ever due or paused."""
    return single("list_chores", {}, lambda found: [Chore(*row) for row in found], is_read=True, is_engine=True)


def pause(chore: str) -> Call[bool]:
    """Let no process take the chore until it is resumed; returns whether that changed anything. Raises ChoreNotFound."""
    return _move("pause", chore)


def resume(chore: str) -> Call[bool]:
    """Undo `pause`; a chore that is overdue is due at once. Raises ChoreNotFound."""
    return _move("resume", chore)


def _move(action: str, chore: str) -> Call[bool]:
    def steps(_: Means) -> Steps[bool]:
        # Processes of another version may have chores that this one does not know.
        known = CHORES if chore in CHORES else CHORES | {name for name, *_ in (yield Step("list_chores", {}))}
        if chore not in known:
            raise ChoreNotFound(chore, known)
        return bool((yield Step(f"{action}_chore", {"chore": chore})))

    return Call(steps, deed=lambda _: Deed(f"{action} chore", f"chore:{chore}"))
