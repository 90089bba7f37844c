"""The trends: how runs went over any range of time, beside another range."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Annotated, Literal, NamedTuple
from urllib.parse import urlencode

from fastapi import Query, Request, Response

from windlass.client.operations import Operator
from windlass.core.access import Role
from windlass.core.insights import Times, error_rate, times
from windlass.core.runs import Minute, Priorities
from windlass.core.series import Point, Series, point
from windlass.web.dashboard.charts import NONE, count_text, ms_text, percent_text, rate_text
from windlass.web.dashboard.frame import draw, now
from windlass.web.dashboard.ranges import QUICK, FromMoment, Length, Moment, Range, chosen_range
from windlass.web.dashboard.run_charts import run_charts
from windlass.web.jobs import Shortened
from windlass.web.request_context import reader_of
from windlass.web.route import Route

Writes = Callable[[float | None], str]
Compare = Annotated[Literal["", "before", "range"], Query()]


class Comparison(NamedTuple):
    """A number of a range beside that of another one."""

    label: str
    now: str
    before: str
    change: str


class PriorityBar(NamedTuple):
    """How many pending jobs have a priority."""

    priority: int
    jobs: int
    percent: float


async def read_range(reader: Operator, wanted: Range, *, task: str | None = None, lane: str | None = None) -> Series:
    """Read the runs of a range."""
    return await reader.insights.series(task=task, lane=lane, from_at=wanted.from_at, to_at=wanted.to_at, step=wanted.step)


def beside(points: Sequence[Point], before: Sequence[Point], step: timedelta) -> list[Point]:
    """Return as many points as there are, one beside each; where the other range ends sooner they are empty."""
    missing = [point(one.at, step, ()) for one in points[len(before) :]]
    return [*before[: len(points)], *missing]


def comparisons(whole: Minute, length: timedelta, other: Minute | None, other_length: timedelta) -> list[Comparison]:
    """Lay out the sums of one range, beside those of another one."""
    mine, others = _sums(whole, length), None if other is None else _sums(other, other_length)
    return [
        Comparison(label, write(value), NONE if others is None else write(others[label][0]), _change(value, others, label))
        for label, (value, write) in mine.items()
    ]


def _sums(whole: Minute, length: timedelta) -> Mapping[str, tuple[float | None, Writes]]:
    wait, run = times(whole.waits, whole.wait_ms, whole.finished), times(whole.runs, whole.duration_ms, whole.finished)
    return {
        "Runs": (whole.finished, count_text),
        "Completed": (whole.completed, count_text),
        "Failed": (whole.failed, count_text),
        "Cancelled": (whole.cancelled, count_text),
        "Error rate": (error_rate(whole.completed, whole.failed), percent_text),
        "Runs a second": (whole.finished / length.total_seconds(), rate_text),
        **_times_of("Wait", wait),
        **_times_of("Run", run),
    }


def _times_of(what: str, found: Times) -> dict[str, tuple[float | None, Writes]]:
    return {f"{what} {name}": (value, ms_text) for name, value in found._asdict().items()}


def _change(value: float | None, others: Mapping[str, tuple[float | None, Writes]] | None, label: str) -> str:
    other = None if others is None else others[label][0]
    if value is None or not other:
        return NONE
    share = value / other - 1
    return "same" if abs(share) < 0.0005 else f"{share * 100:+.1f} %"  # noqa: PLR2004 - what the text would show as nothing


def priority_bars(found: Priorities) -> list[PriorityBar]:
    """Lay out the pending jobs by priority."""
    most = max(found.jobs.values(), default=0) or 1
    return [PriorityBar(priority, jobs, round(jobs / most * 100, 1)) for priority, jobs in found.jobs.items()]


async def show_trends(
    request: Request,
    *,
    range_: Annotated[str | None, Query(alias="range", max_length=40)] = None,
    from_at: FromMoment = None,
    to: Moment = None,
    step: Length = None,
    task: Shortened = None,
    lane: Shortened = None,
    compare: Compare = "",
    other: Moment = None,
) -> Response:
    """Show the runs of a range; `other` is when the range begins that it is compared with."""
    reader = reader_of(request)
    at = await now(request)
    is_open = from_at is None and to is None
    wanted = chosen_range(at, from_at=from_at, to_at=to, step=step, quick=range_ or ("1h" if is_open else None))
    found = await read_range(reader, wanted, task=task or None, lane=lane or None)
    second = _other(wanted, compare, other)
    past = None if second is None else await read_range(reader, second, task=task or None, lane=lane or None)
    summary = await reader.insights.summary()
    before = beside(found.points, past.points, wanted.step) if past else []
    flow = summary.tasks.get(task) if task else summary.lanes.get(lane) if lane else summary.total
    kept = {name: value for name, value in (("task", task), ("lane", lane), ("compare", "before" if compare else "")) if value}
    return draw(
        request,
        "trends.html",
        at,
        here="/trends",
        title="Trends",
        wanted=wanted,
        second=second,
        runs=run_charts(found.points, wanted.step, found.whole, before=before),
        sums=comparisons(found.whole, wanted.length, None if past is None else past.whole, wanted.length),
        quick=[(name, f"/trends?{urlencode({'range': name} | kept)}") for name in QUICK],
        task=task or "",
        lane=lane or "",
        step=step or "",
        compare=compare,
        flow=flow,
        priorities=priority_bars(summary.priorities),
        are_priorities_exact=summary.priorities.is_exact,
        task_names=list(summary.tasks),
        lane_names=list(summary.lanes),
    )


def _other(wanted: Range, compare: str, other: datetime | None) -> Range | None:
    if compare == "range" and other is not None:
        return Range(other, other + wanted.length, wanted.step)
    return wanted.before if compare else None


ROUTES = (Route("GET", "/trends", Role.VIEWER, show_trends, is_page=True, is_costly=True),)
