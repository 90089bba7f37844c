"""What takes a look at every row: the file, the rules of the tables, the counts, the audit chain."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import timedelta

from windlass.core.audit import Actor
from windlass.core.finding import Finding, Notice, ok, problem, warning
from windlass.doctor.case import DoctorCase
from windlass.doctor.sizes import counted
from windlass.store import doctor
from windlass.store.calls.call import Call, single
from windlass.store.calls.recount import Recounted, recount
from windlass.store.doctor import BrokenRule
from windlass.store.rows import Row

_COUNTS = frozenset({"counts", "totals"})
_AUDIT = "audit"
_MOST_SHOWN = 10


def _whole(query: str) -> Call[list[Row]]:
    """Ask what reads whole tables, whatever their size."""
    return single(query, {}, list, is_read=True, timeout=timedelta())


async def check_file(case: DoctorCase) -> Finding:
    """Let SQLite read its whole file."""
    found = await case.store.run(_whole("doctor_file"))
    if not found:
        return ok("file", "no page of the file is damaged")
    remedy = "stop every process and restore a backup, or `sqlite3 FILE .recover`"
    return problem("file", "the database file is damaged", remedy, *(str(row[0]) for row in found[:_MOST_SHOWN]))


async def check_rows(case: DoctorCase, notice: Notice) -> list[Finding]:
    """Read every row and hold it to its rules; then counts and the audit chain."""
    settings = case.settings
    broken = await doctor.check(case.store, profiles=settings.profiles, kept=settings.retention, notice=notice)
    return [_rows(broken), _counts(broken), _audit(broken)]


def _rows(broken: Sequence[BrokenRule]) -> Finding:
    found = [one for one in broken if one.rule not in _COUNTS and one.rule != _AUDIT]
    if not found:
        return ok("rows", "every row keeps the rules of its table")
    kinds = ", ".join(f"{rule} ({number})" for rule, number in Counter(one.rule for one in found).most_common(5))
    message = f"{counted(len(found), 'rule is', 'rules are')} broken: {kinds}"
    remedy = "keep a copy of the database and report it; `windlass job ID` shows a job that is named"
    return problem("rows", message, remedy, *map(_line, found[:_MOST_SHOWN]))


def _counts(broken: Sequence[BrokenRule]) -> Finding:
    found = [one for one in broken if one.rule in _COUNTS]
    if not found:
        return ok("counts", "counts and totals are what the tables show")
    message = f"{counted(len(found), 'count is', 'counts are')} wrong"
    return problem("counts", message, "windlass doctor --repair", *map(_line, found[:_MOST_SHOWN]))


def _audit(broken: Sequence[BrokenRule]) -> Finding:
    found = [one for one in broken if one.rule == _AUDIT]
    if not found:
        return ok("audit", "no chained line was edited, moved or deleted")
    message = f"the audit chain is broken in {counted(len(found), 'place')}"
    return problem("audit", message, "the log was changed: compare it with a backup", *map(_line, found[:_MOST_SHOWN]))


def _line(broken: BrokenRule) -> str:
    job = "" if broken.job_id is None else f"job {broken.job_id}: "
    return f"{broken.rule}: {job}{broken.detail}"


async def repair(case: DoctorCase, actor: Actor | None) -> Finding:
    """Count again, and repair what is wrong. Checked first without a lock: on SQLite all writers wait for a recount."""
    store = case.store if actor is None else case.store.acting(actor)
    wrong = [await store.run(_whole(query)) for query in ("doctor_counts", "doctor_total_keys")]
    done = await store.run(recount()) if any(wrong) else Recounted()
    if not done.is_changed:
        return ok("repair", "counts and totals were right; nothing was changed")
    lines = (*done.counts, *done.totals)
    message = f"{counted(len(lines), 'count was', 'counts were')} wrong and {'is' if len(lines) == 1 else 'are'} right now"
    remedy = "`windlass doctor` shows whether a trigger is missing; if none is, report it"
    return warning("repair", message, remedy, *lines[:_MOST_SHOWN])
