"""Counts again what the triggers keep, and adds what is missing: safe while workers run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import timedelta
from typing import NamedTuple

from windlass.core.audit import Deed
from windlass.core.payload import encode_object
from windlass.store.calls.call import Call, Means, Step, Steps
from windlass.store.rows import Row

_MOST_AUDITED = 20


class Recounted(NamedTuple):
    """What was wrong, a line for each key; it is right now."""

    counts: tuple[str, ...] = ()
    totals: tuple[str, ...] = ()

    @property
    def is_changed(self) -> bool:
        """Whether anything was wrong."""
        return bool(self.counts or self.totals)


def recount() -> Call[Recounted]:
    """Make the counts of jobs and the totals of runs those that the tables show; returns what it changed.

    What is wrong is added to the counts as they are by then: a change meanwhile is not lost.
    """

    def steps(_: Means) -> Steps[Recounted]:
        yield Step("lock_recount", {})
        # Read after the lock and not with it: only a new snapshot sees what the recount before us has committed.
        jobs = yield Step("doctor_counts", {})
        if jobs:
            yield Step("add_counts", {"batch": json.dumps([_missing_jobs(row) for row in jobs])})
        runs = yield Step("doctor_total_keys", {})
        if runs:
            yield Step("add_totals", {"batch": json.dumps([_missing_runs(row) for row in runs])})
        return Recounted(tuple(map(_job_line, jobs)), tuple(map(_run_line, runs)))

    # Reads whole tables, whatever their size.
    return Call(steps, timeout=timedelta(), deed=_deed)


def _missing_jobs(row: Row) -> dict[str, object]:
    task, lane, state, reason, counted, present = row
    return {"task": task, "lane": lane, "state": state, "wait_reason": reason, "jobs": present - counted}


def _missing_runs(row: Row) -> dict[str, object]:
    task, status, reason, counted, kept, wait_ms, duration_ms = row
    times = {"wait_ms": max(wait_ms, 0), "duration_ms": max(duration_ms, 0)}
    return {"task": task, "status": status, "reason": reason, "runs": kept - counted, **times}


def _job_line(row: Row) -> str:
    task, lane, state, reason, counted, present = row
    return f"task {task!r}, lane {lane!r}, {state} {reason}".rstrip() + f": {counted} counted, {present} present"


def _run_line(row: Row) -> str:
    task, status, reason, counted, kept, *_ = row
    return f"runs of task {task!r}, {status} {reason}".rstrip() + f": {counted} counted, {kept} kept"


def _deed(done: Recounted) -> Deed | None:
    if not done.is_changed:
        return None
    lines: Sequence[str] = [*done.counts, *done.totals]
    details = {"counts": len(done.counts), "totals": len(done.totals), "changed": list(lines[:_MOST_AUDITED])}
    return Deed("repair counts", None, "done", encode_object(details))
