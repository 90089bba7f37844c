"""The tasks that processes have declared: how much they run, and how well."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, NamedTuple

from fastapi import Query, Request, Response

from windlass.core.access import Role
from windlass.core.insights import Flow
from windlass.core.job import MAX_NAME, JobState
from windlass.core.known_task import KnownTask
from windlass.web.dashboard.charts import ms_text, percent_text, rate_text
from windlass.web.dashboard.frame import draw
from windlass.web.request_context import reader_of
from windlass.web.route import Route

_SIZE = 100
_SHOWN = ((JobState.PENDING, JobState.SCHEDULED), (JobState.RUNNING,), (JobState.COMPLETED,), (JobState.FAILED,))


class TaskRow(NamedTuple):
    """A task with its jobs in each group of states."""

    task: KnownTask
    sums: list[tuple[str, int]]
    flow: Flow | None


def _sums(counts: Counter[JobState]) -> list[tuple[str, int]]:
    return [(",".join(states), sum(counts[state] for state in states)) for states in _SHOWN]


async def show_tasks(request: Request, after: Annotated[str, Query(max_length=MAX_NAME)] = "") -> Response:
    """Show the tasks by name."""
    reader = reader_of(request)
    summary = await reader.insights.summary()
    known = await reader.known_tasks.list(after=after, limit=_SIZE)
    counts: dict[str, Counter[JobState]] = {}
    for one in summary.present.counts:
        counts.setdefault(one.task, Counter())[one.state] += one.jobs
    rows = [TaskRow(task, _sums(counts.get(task.name, Counter())), summary.tasks.get(task.name)) for task in known]
    following = known[-1].name if len(known) == _SIZE else None
    return draw(
        request,
        "tasks.html",
        summary.present.at,
        here="/tasks",
        title="Tasks",
        rows=rows,
        next=following,
        rate=rate_text,
        ms=ms_text,
        percent=percent_text,
    )


ROUTES = (Route("GET", "/tasks", Role.VIEWER, show_tasks, is_page=True, is_costly=True),)
