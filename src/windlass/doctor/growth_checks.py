"""Tables that only grow: history that is never deleted, and what waits to be folded or chained."""

from __future__ import annotations

from datetime import timedelta

from windlass.core.durations import in_words
from windlass.core.finding import Finding, ok, warning
from windlass.doctor.case import DoctorCase
from windlass.doctor.sizes import counted

_MOST = 100_001
_TOO_MANY = {"count deltas": 100_000, "run deltas": 100_000, "unchained": 10_000, "open letters": 10_000}
_LONGEST_KEPT = timedelta(days=3650)
_LARGE = 10_000_000
_KEPT = {
    "windlass_audit": "audit lines are kept for ever: plan the disk for them",
    "windlass_entries": "entries of feeds are kept for ever: unsubscribe from feeds that are not read",
    "windlass_items": "items are kept for ever: export them with `windlass items export` and delete what is not needed",
    "windlass_pages": "pages are kept until they are deleted: `windlass pages delete SOURCE`",
    "windlass_idempotency": "keys go with their jobs: keep those for less long, WINDLASS_KEEP_DAYS",
    "windlass_breaker_events": "`windlass chores` shows whether prune-breaker-events runs",
}
"""Tables that may grow without end, and what can be done."""
_HELP = {
    "count deltas": "`windlass chores` shows whether fold runs; it is done by every worker and by `windlass upkeep`",
    "run deltas": "`windlass chores` shows whether fold runs; it is done by every worker and by `windlass upkeep`",
    "unchained": "`windlass chores` shows whether chain-audit runs; it is done by every worker and by `windlass upkeep`",
    "open letters": "windlass dead acknowledge --all; letters that were not dealt with are kept for ever",
}


async def check_backlog(case: DoctorCase) -> Finding:
    """Look at what waits for upkeep to fold or chain it, or for people to deal with it."""
    found = {kind: rows for kind, rows in await case.ask("doctor_backlog", most=_MOST) if rows >= _TOO_MANY[kind]}
    if not found:
        return ok("backlog", "deltas are folded, audit lines are chained, dead letters are dealt with")
    details = [f"{kind}: {_bounded(rows)}" for kind, rows in found.items()]
    first = next(iter(found))
    return warning("backlog", f"too much waits: {', '.join(details)}", _HELP[first], *details)


def _bounded(rows: int) -> str:
    return f"more than {_MOST - 1:,}" if rows >= _MOST else f"{rows:,}"


async def check_retention(case: DoctorCase) -> Finding:
    """Look whether history is deleted in time."""
    kept = case.settings.retention
    message = f"finished jobs stay {in_words(kept.keep)}, dead letters that were dealt with {in_words(kept.keep_dead)}"
    if max(kept.keep, kept.keep_dead) < _LONGEST_KEPT:
        return ok("retention", message)
    name = "WINDLASS_KEEP_DAYS" if kept.keep >= _LONGEST_KEPT else "WINDLASS_KEEP_DEAD_DAYS"
    return warning(
        "retention", f"{message}: the tables grow for years", f"set {name} to as many days as you need, as in {name}=30"
    )


async def check_growth(case: DoctorCase) -> Finding:
    """Look at tables that nothing makes smaller, by estimates that read no table."""
    rows = {name: count for name, count, *_ in await case.ask("doctor_tables")}
    large = {name: rows[name] for name in _KEPT if rows.get(name, 0) >= _LARGE}
    if not large:
        return ok("growth", "no table that is never made smaller is large")
    name = max(large, key=lambda one: large[one])
    details = [f"{one}: about {count:,} rows" for one, count in large.items()]
    return warning("growth", f"{name} has about {counted(large[name], 'row')}", _KEPT[name], *details)
