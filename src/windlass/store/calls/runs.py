"""How runs went: totals, minutes, and what is made of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime, timedelta

from windlass.core.checks import check_instant, check_range, check_text, check_wait
from windlass.core.histogram import Histogram
from windlass.core.job import MAX_NAME, RunReason, RunStatus
from windlass.core.runs import JobStats, Minute, Total, add_minutes
from windlass.core.series import KEEP_MINUTES
from windlass.errors import InvalidInput, JobNotFound
from windlass.store.calls.call import Call, Means, Step, Steps, single
from windlass.store.calls.move import possible
from windlass.store.rows import SHAPES, Row, Shape

SHAPES |= {"run_minutes": Shape((0,)), "job_stats": Shape((4, 5))}


def totals() -> Call[list[Total]]:
    """Read all runs since the beginning, by task, status and reason."""
    return single("run_totals", {}, read_totals, is_read=True)


def read_totals(found: Sequence[Row]) -> list[Total]:
    """Read what a statement found of runs by task, status and reason."""
    return [Total(row[0], RunStatus(row[1]), RunReason(row[2]) if row[2] else None, *row[3:]) for row in found]


def minutes(since: datetime, until: datetime, *, task: str | None = None, lane: str | None = None) -> Call[list[Minute]]:
    """Read the minutes that began from `since` on and before `until`, oldest first; of all tasks and lanes, or of one."""
    for field, name in (("task", task), ("lane", lane)):
        if name is not None:
            check_text(field, name, MAX_NAME)
    check_instant("since", since)
    check_instant("until", until)
    if until - since > KEEP_MINUTES:
        raise InvalidInput("since", since, f"must be at most {KEEP_MINUTES.days} days before until")
    return read_minutes(since, until, task=task, lane=lane)


def read_minutes(since: datetime, until: datetime, *, task: str | None = None, lane: str | None = None) -> Call[list[Minute]]:
    """Read minutes; the caller has checked the bounds."""
    return single("run_minutes", _between(since, until, task, lane), lambda found: add_minutes(map(minute, found)), is_read=True)


def read_parts(since: datetime, until: datetime, *, task: str | None = None, lane: str | None = None) -> Call[list[Minute]]:
    """Read minutes as they are stored, each in parts, for callers that add them up to longer times."""
    return single("run_minutes", _between(since, until, task, lane), lambda found: [minute(row) for row in found], is_read=True)


def _between(since: datetime, until: datetime, task: str | None, lane: str | None) -> dict[str, object]:
    return {"task": task, "lane": lane, "since": since, "before_at": until}


def minute(row: Row) -> Minute:
    """Read what ended within a minute."""
    return Minute(row[0], row[1] or 0, row[2] or 0, row[3] or 0, row[4], row[5], histogram(row[6]), histogram(row[7]))


def histogram(text: str) -> Histogram:
    """Read a histogram."""
    return Histogram({int(bucket): runs for bucket, runs in json.loads(text).items()})


def fold_runs(limit: int = 10_000) -> Call[int]:
    """Move counted runs to their totals and minutes; nothing a reader adds up changes."""
    check_range("limit", limit, 1, 1_000_000)
    return single("fold_runs", {"limit": limit}, lambda found: found[0][0])


def prune_minutes(keep: timedelta = KEEP_MINUTES, *, limit: int = 10_000) -> Call[int]:
    """Delete minutes older than `keep`."""
    check_wait("keep", keep, least=timedelta(minutes=1))
    check_range("limit", limit, 1, 1_000_000)
    return single("prune_minutes", {"keep_for": keep, "limit": limit}, lambda found: found[0][0])


def job_stats(job_id: int) -> Call[JobStats]:
    """Add up the kept runs of one job; raises JobNotFound."""

    def steps(_: Means) -> Steps[JobStats]:
        found = (yield Step("job_stats", {"job_id": job_id})) if possible([job_id]) else []
        if not found:
            raise JobNotFound(job_id)
        finished, completed, failed, spent_ms, last_at, next_at = found[0]
        average = spent_ms / finished if finished else None
        return JobStats(finished, completed, failed, average, last_at, next_at)

    return Call(steps, is_single=True, is_read=True)
