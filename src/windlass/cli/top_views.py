"""What `windlass top` shows: lanes, tasks, workers, the jobs that run the longest and those that failed last."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, NamedTuple

from windlass.cli import workers
from windlass.cli.output import job_fields, plain
from windlass.cli.stats import FLOW, flow_rows
from windlass.core.job import Job
from windlass.errors import InvalidInput, nearest
from windlass.store.calls.top import Top

Row = Mapping[str, Any]
_SECOND = timedelta(seconds=1)


class View(NamedTuple):
    """One of the tables; the first column names the thing that a row is about."""

    columns: tuple[str, ...]
    spare: tuple[str, ...]
    """The columns that are left out first where the terminal is narrow."""
    rows: Callable[[Top], Sequence[Row]]


def job_rows(jobs: Sequence[Job]) -> list[Row]:
    """Make a row of each job."""
    return [{"job": one.id} | {name: getattr(one, name) for name in JOB_COLUMNS[1:]} for one in jobs]


def _workers(found: Top) -> list[Row]:
    return [{"worker": one.id} | {name: getattr(one, name) for name in workers.COLUMNS[1:]} for one in found.workers]


def _slowest(found: Top) -> list[Row]:
    return [
        {
            "job": one.id,
            "task": one.task,
            "running_for": found.summary.present.age(one.started_at) // _SECOND * _SECOND,
            "started_at": one.started_at,
            "worker": one.worker,
        }
        for one in found.slowest
    ]


JOB_COLUMNS = ("job", "task", "lane", "state", "attempt", "priority", "run_at", "finished_at", "last_error")
"""The columns of a list of jobs."""
_FAILED = ("job", "task", "lane", "attempt", "finished_at", "last_error")
_SPARE_FLOW = ("run_p50_ms", "oldest_s", "in_per_s", "failed")
_SPARE_WORKER = ("loop_blocks", "app_version", "version", "kind", "started_at")

VIEWS = {
    "lanes": View(("lane", *FLOW), _SPARE_FLOW, lambda found: flow_rows("lane", found.summary.lanes)),
    "tasks": View(("task", *FLOW), _SPARE_FLOW, lambda found: flow_rows("task", found.summary.tasks)),
    "workers": View(("worker", *workers.COLUMNS[1:]), _SPARE_WORKER, _workers),
    "slowest": View(("job", "task", "running_for", "started_at", "worker"), ("started_at",), _slowest),
    "failing": View(_FAILED, ("attempt", "lane"), lambda found: job_rows(found.failing)),
}
"""The views in the order of their keys 1 to 5."""


def sort_column(view: str, text: str) -> str:
    """Find the column of a view by its typed name; raises InvalidInput."""
    column, columns = text.strip().lower().replace(" ", "_"), VIEWS[view].columns
    if column not in columns:
        raise InvalidInput("sort", text, f"must be a column of {view}: {', '.join(columns)}{nearest(column, columns)}")
    return column


def ordered(rows: Sequence[Row], column: str | None, *, is_reversed: bool) -> Sequence[Row]:
    """Order rows by a column, the largest number and the first name first; those without a value come last.

    Without a column they keep their order, which is that of the view.
    """
    if column is None:
        return rows[::-1] if is_reversed else rows
    known = [row for row in rows if row.get(column) is not None]
    is_text = any(isinstance(row[column], str) for row in known)
    known.sort(key=lambda row: str(row[column]) if is_text else row[column], reverse=is_text is is_reversed)
    return [*known, *(row for row in rows if row.get(column) is None)]


def top_fields(found: Top) -> dict[str, Any]:
    """Return everything for JSON."""
    return {
        **plain(found.summary),
        "workers": [plain(one) for one in found.workers],
        "slowest": [plain(one) for one in found.slowest],
        "failing": [job_fields(one) for one in found.failing],
    }
