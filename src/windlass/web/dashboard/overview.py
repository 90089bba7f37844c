"""The first page: what is wrong, the queue's statistics, the last jobs, and the workers."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from fastapi import Request, Response
from markupsafe import Markup

from windlass.core.access import Role
from windlass.core.insights import Flow, NextFire
from windlass.core.job import JobState
from windlass.core.runs import Minute, span
from windlass.core.series import Point, point
from windlass.core.worker import PULLING, StartedJob, WorkerRecord
from windlass.web.dashboard import charts
from windlass.web.dashboard.charts import Gauge
from windlass.web.dashboard.frame import draw, draw_board
from windlass.web.dashboard.health import troubles
from windlass.web.dashboard.jobs import ListedJob, job_row
from windlass.web.dashboard.lanes import lane_gauge
from windlass.web.dashboard.run_charts import run_charts
from windlass.web.dashboard.tiles import sampled_columns, tiles
from windlass.web.request_context import address_of, context_of
from windlass.web.route import Route
from windlass.web.snapshot import Snapshot

DEMO = "windlass-demo"
"""What the application of `windlass up --demo` is called."""
HELLO = "hello"
"""The built-in task that the page offers to run."""
_SHOWN = (
    JobState.RUNNING,
    JobState.PENDING,
    JobState.SCHEDULED,
    JobState.COMPLETED,
    JobState.FAILED,
    JobState.PAUSED,
    JobState.CANCELLED,
)
_MAX_TASKS = 12
_MAX_TROUBLES = 3
_MAX_LANES = 6
_MAX_WORKERS = 4
_MAX_CELLS = 24
_MAX_GROUPS = 4
_LISTED_FIRES = 3
_MINUTE = timedelta(minutes=1)
_MAX_TRACE = 4_000


class Group(NamedTuple):
    """The jobs of a task."""

    name: str
    waiting: int
    running: int
    completed: int
    failed: int


class LaneSums(NamedTuple):
    """A lane with the slots that serve it."""

    name: str
    waiting: int
    running: int
    flow: Flow | None
    gauge: Gauge
    is_paused: bool


class OnlineWorker(NamedTuple):
    """A process that runs jobs, with a cell for each slot as far as they can be shown."""

    id: str
    name: str
    pools: str
    jobs: Sequence[StartedJob]
    free: int
    slots: int
    since: datetime


class ShownFire(NamedTuple):
    """A recurring job on the time line."""

    job_id: int
    name: str
    at: datetime
    place: float


def trace_of(seen: Snapshot, row: ListedJob) -> str:
    """Return the end of the stack trace that the newest run of a failed job left."""
    trace = seen.traces.get(row.job.id)
    return _end_of(trace) if trace and row.error else ""


def _end_of(trace: str) -> str:
    """Keep the last lines of a stack trace: they name the error and where it was raised."""
    return trace if len(trace) <= _MAX_TRACE else "…\n" + trace[-_MAX_TRACE:].partition("\n")[2]


def task_groups(seen: Snapshot) -> list[Group]:
    """Add the jobs up by task, the largest first."""
    sums: dict[str, Counter[JobState]] = {}
    for one in seen.counts:
        sums.setdefault(one.task, Counter())[one.state] += one.jobs
    groups = [_group(task, counts) for task, counts in sums.items()]
    return sorted(groups, key=lambda one: (-one.running - one.waiting - one.completed - one.failed, one.name))


def _group(name: str, counts: Counter[JobState]) -> Group:
    waiting = counts[JobState.PENDING] + counts[JobState.SCHEDULED] + counts[JobState.PAUSED]
    return Group(name, waiting, counts[JobState.RUNNING], counts[JobState.COMPLETED], counts[JobState.FAILED])


def lane_sums(seen: Snapshot) -> list[LaneSums]:
    """List the lanes, those with the most to do first."""
    rows = [
        LaneSums(
            name=lane.name,
            waiting=lane.counts.get(JobState.PENDING, 0),
            running=(running := lane.counts.get(JobState.RUNNING, 0)),
            flow=seen.summary.lanes.get(lane.name),
            gauge=lane_gauge(seen.summary.present, lane.name, running),
            is_paused=lane.paused_at is not None,
        )
        for lane in seen.lanes
    ]
    return sorted(rows, key=lambda one: (not one.is_paused, -one.waiting, -one.running, one.name))


def minute_points(minutes: Sequence[Minute]) -> list[Point]:
    """Make a point of each minute."""
    return [point(one.minute, _MINUTE, [one]) for one in minutes]


def worker_row(worker: WorkerRecord) -> OnlineWorker:
    """Lay out a worker."""
    is_pulling = worker.kind == PULLING
    pools: dict[str, int] = {} if is_pulling else worker.pools
    slots = len(worker.jobs) if is_pulling else sum(pools.values())
    shown = worker.jobs[:_MAX_CELLS]
    return OnlineWorker(
        id=worker.id,
        name=worker.id if is_pulling else f"{worker.host}:{worker.pid}",
        pools="over HTTP" if is_pulling else f"slots {', '.join(f'{lane}={slots}' for lane, slots in pools.items())}",
        jobs=shown,
        free=max(0, min(slots - len(worker.jobs), _MAX_CELLS - len(shown))),
        slots=slots,
        since=worker.started_at,
    )


def shown_fires(fires: Sequence[NextFire], now: datetime) -> list[ShownFire]:
    """Place what runs within a day on the time line."""
    near = (one for one in fires if one.at - now <= timedelta(days=1))
    return [ShownFire(one.job_id, one.name or one.task, one.at, charts.along(one.at, now)) for one in near]


def is_untouched(seen: Snapshot) -> bool:
    """Whether nothing was enqueued yet: what code declares is there from the start."""
    return seen.total <= len(seen.jobs) and all(job.declared_by for job in seen.jobs)


async def show_landing(request: Request) -> Response:
    """Show the state of the queue."""
    context = context_of(request)
    principal = context.principal
    seen = await context.server.snapshots.now()
    # Users with the same rights see the same: it is drawn once for all of them.
    viewer = (principal.role, principal.csrf is not None, address_of(request))
    board = seen.boards.get(viewer)
    if board is None:
        board = seen.boards[viewer] = _board(request, seen)
    title = "Demo" if context.app.name == DEMO else "Overview"
    return draw(request, "overview.html", seen.at, here="/", title=title, board=board)


def _board(request: Request, seen: Snapshot) -> Markup:
    context = context_of(request)
    base = address_of(request)
    points = minute_points(seen.minutes)
    runs = run_charts(points, _MINUTE, span(seen.minutes) or Minute(seen.at), more=sampled_columns(seen.samples))
    wrong, lanes, fires = troubles(seen), lane_sums(seen), shown_fires(seen.fires, seen.at)
    return draw_board(
        request,
        "overview_board.html",
        seen.at,
        seen=seen,
        troubles=wrong[:_MAX_TROUBLES],
        more_troubles=max(0, len(wrong) - _MAX_TROUBLES),
        states=[(state.value, seen.count(state)) for state in _SHOWN],
        tiles=tiles(seen, points, runs.numbers),
        runs=runs,
        lanes=lanes[:_MAX_LANES],
        more_lanes=max(0, len(lanes) - _MAX_LANES),
        groups=seen.groups.groups[:_MAX_GROUPS],
        workers=[worker_row(worker) for worker in seen.workers[:_MAX_WORKERS]],
        more_workers=max(0, len(seen.workers) - _MAX_WORKERS),
        fires=fires,
        listed_fires=fires[:_LISTED_FIRES],
        spots=charts.spots(seen.at),
        jobs=[(row, trace_of(seen, row)) for row in (job_row(job, seen.at) for job in seen.jobs)],
        tasks=task_groups(seen)[:_MAX_TASKS],
        is_admin=context.principal.may(Role.ADMIN),
        is_untouched=is_untouched(seen),
        is_demo=context.app.name == DEMO,
        has_hello=HELLO in context.app.tasks,
        may_enqueue=context.principal.may(Role.PRODUCER),
        jobs_url=shlex.quote(f"{base}/api/v1/jobs"),
    )


ROUTES = (Route("GET", "/", Role.VIEWER, show_landing, is_page=True, is_costly=True),)
