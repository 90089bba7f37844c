"""The first page: how many jobs there are of each kind, the last ones, and who runs them."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from fastapi import Request, Response

from windlass import __version__
from windlass.core.access import Role
from windlass.core.job import CLOSED, Job, JobState, WaitReason
from windlass.core.runs import Minute, span
from windlass.core.worker import PULLING, WorkerRecord
from windlass.web.request_context import context_of
from windlass.web.route import Route
from windlass.web.snapshot import MINUTES, Snapshot
from windlass.web.templates import page

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
_SECOND, _MINUTE, _HOUR, _DAY = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
_ENDED = frozenset({JobState.COMPLETED, JobState.CANCELLED})
_RETRIED = frozenset({WaitReason.RETRY, WaitReason.LOST})
_MAX_TASKS = 12
_CHART = 56
"""How high the tallest bar of the chart is, in its own units."""
_LEAST_BAR = 1.5
_MAX_ERROR = 200
_MAX_TRACE = 4_000


class JobRow(NamedTuple):
    """A line of the last jobs."""

    id: int
    task: str
    lane: str
    state: str
    word: str
    """The state, or that it will be tried again."""
    detail: str
    updated_at: datetime
    age: str
    since: datetime | None
    """When a run that goes on began."""
    duration: str
    error: str
    trace: str
    """The end of the stack trace of the run that failed last."""


class Group(NamedTuple):
    """The jobs of a task or lane."""

    name: str
    waiting: int
    running: int
    completed: int
    failed: int
    is_paused: bool = False


class Bar(NamedTuple):
    """A minute of the chart: two pieces from the floor up, in its own units."""

    place: int
    completed: float
    failed: float
    title: str


class Chart(NamedTuple):
    """The runs of the last minutes."""

    bars: Sequence[Bar]
    summary: str
    peak: int


class WorkerRow(NamedTuple):
    """A process that runs jobs."""

    name: str
    pools: str
    running: int
    jobs: str
    since: datetime
    age: str


def short(span_: timedelta) -> str:
    """Write how long something takes, roughly."""
    if span_ < _SECOND:
        return f"{max(0, span_ // timedelta(milliseconds=1))} ms"
    if span_ < _MINUTE:
        return f"{span_ / _SECOND:.1f} s" if span_ < 10 * _SECOND else f"{span_ // _SECOND} s"
    if span_ < _HOUR:
        return f"{span_ // _MINUTE} min"
    return f"{span_ // _HOUR} h" if span_ < 2 * _DAY else f"{span_ // _DAY} d"


def age(since: datetime, now: datetime) -> str:
    """Write how long ago something was, in whole seconds and more."""
    passed = max(timedelta(), now - since)
    return "now" if passed < _SECOND else short(passed - passed % _SECOND).replace(".0 ", " ")


def job_row(job: Job, now: datetime, trace: str | None = None) -> JobRow:
    """Lay out a job; `trace` is what its newest run left."""
    is_running = job.state is JobState.RUNNING
    is_retried = job.state not in CLOSED and job.wait_reason in _RETRIED
    error = "" if job.state in _ENDED or is_running else (job.last_error or "")
    ran = job.started_at and job.finished_at and job.finished_at >= job.started_at
    return JobRow(
        id=job.id,
        task=job.task,
        lane=job.lane,
        state="retry" if is_retried and not is_running else job.state.value,
        word="retrying" if is_retried and not is_running else job.state.value,
        detail=_detail(job),
        updated_at=job.updated_at,
        age=age(job.updated_at, now),
        since=job.started_at if is_running else None,
        duration=short(now - job.started_at) if is_running and job.started_at else _duration(job) if ran else "",
        error=error[:_MAX_ERROR],
        trace=_end_of(trace) if error and trace else "",
    )


def _end_of(trace: str) -> str:
    """Keep the last lines of a stack trace: they name the error and where it was raised."""
    return trace if len(trace) <= _MAX_TRACE else "…\n" + trace[-_MAX_TRACE:].partition("\n")[2]


def _duration(job: Job) -> str:
    return short(job.finished_at - job.started_at) if job.started_at and job.finished_at else ""


def _detail(job: Job) -> str:
    """Return the one detail that a state alone does not show."""
    if job.state is JobState.RUNNING:
        return job.progress_message or (f"try {job.attempt}" if job.attempt > 1 else "")
    if job.state in CLOSED:
        return f"try {job.attempt}" if job.attempt > 1 else ""
    if job.wait_reason in _RETRIED:
        return f"try {job.attempt + 1}" + (f" of {job.max_attempts}" if job.max_attempts else "")
    return "recurring" if job.cadence else job.wait_reason.value if job.wait_reason not in {None, WaitReason.NEW} else ""


def task_groups(seen: Snapshot) -> list[Group]:
    """Add the jobs up by task, the largest first."""
    sums: dict[str, Counter[JobState]] = {}
    for one in seen.counts:
        sums.setdefault(one.task, Counter())[one.state] += one.jobs
    groups = [_group(task, counts) for task, counts in sums.items()]
    return sorted(groups, key=lambda one: (-one.running - one.waiting - one.completed - one.failed, one.name))


def _group(name: str, counts: Counter[JobState], *, is_paused: bool = False) -> Group:
    waiting = counts[JobState.PENDING] + counts[JobState.SCHEDULED] + counts[JobState.PAUSED]
    return Group(
        name, waiting, counts[JobState.RUNNING], counts[JobState.COMPLETED], counts[JobState.FAILED], is_paused=is_paused
    )


def lane_groups(seen: Snapshot) -> list[Group]:
    """List the lanes that have jobs or were paused."""
    groups = (_group(lane.name, Counter(lane.counts), is_paused=lane.paused_at is not None) for lane in seen.lanes)
    return [one for one in groups if one.is_paused or any(one[1:5])]


def chart(minutes: Sequence[Minute]) -> Chart:
    """Draw the runs of each minute."""
    peak = max((one.finished for one in minutes), default=0)
    scale = _CHART / peak if peak else 0.0
    bars = [_bar(place, one, scale) for place, one in enumerate(minutes)]
    total = span(minutes)
    if total is None or not total.finished:
        return Chart(bars, f"No runs in the last {MINUTES} minutes.", peak)
    half, most = total.runs.percentile(50) or 0.0, total.runs.percentile(95) or 0.0
    summary = f"{total.finished:,} runs in the last {MINUTES} minutes, {total.failed:,} failed; half took up to {_ms(half)}"
    return Chart(bars, f"{summary}, 95 % up to {_ms(most)}.", peak)


def _ms(value: float) -> str:
    return short(timedelta(milliseconds=value))


def _bar(place: int, minute: Minute, scale: float) -> Bar:
    failed = max(_LEAST_BAR, minute.failed * scale) if minute.failed else 0.0
    rest = minute.finished - minute.failed
    completed = max(_LEAST_BAR, rest * scale) if rest else 0.0
    title = f"{minute.minute:%H:%M} UTC: {minute.finished} runs, {minute.failed} failed"
    return Bar(place, round(completed, 1), round(failed, 1), title)


def worker_row(worker: WorkerRecord, now: datetime) -> WorkerRow:
    """Lay out a worker."""
    is_pulling = worker.kind == PULLING
    pools: dict[str, int] = {} if is_pulling else json.loads(worker.pools)
    tasks = Counter(job.task for job in worker.jobs)
    return WorkerRow(
        name=worker.id if is_pulling else f"{worker.host}:{worker.pid}",
        pools="over HTTP" if is_pulling else f"slots {', '.join(f'{lane}={slots}' for lane, slots in pools.items())}",
        running=len(worker.jobs),
        jobs=", ".join(f"{jobs} {task}" if jobs > 1 else task for task, jobs in tasks.items()),
        since=worker.started_at,
        age=age(worker.started_at, now),
    )


def is_untouched(seen: Snapshot) -> bool:
    """Whether nobody has enqueued anything yet: what code declares is there from the start."""
    return seen.total <= len(seen.jobs) and all(job.declared_by for job in seen.jobs)


async def show_landing(request: Request) -> Response:
    """Show how things are."""
    context = context_of(request)
    seen = await context.server.snapshots.now()
    base = str(request.base_url).rstrip("/")
    return page(
        "landing.html",
        seen=seen,
        version=__version__,
        states=[(state.value, seen.count(state)) for state in _SHOWN],
        jobs=[job_row(job, seen.at, seen.traces.get(job.id)) for job in seen.jobs],
        tasks=task_groups(seen)[:_MAX_TASKS],
        lanes=lane_groups(seen),
        workers=[worker_row(worker, seen.at) for worker in seen.workers],
        chart=chart(seen.minutes),
        is_untouched=is_untouched(seen),
        is_demo=context.app.name == DEMO,
        has_hello=HELLO in context.app.tasks,
        may_enqueue=context.principal.may(Role.PRODUCER),
        jobs_url=shlex.quote(f"{base}/api/v1/jobs"),
        principal=context.principal,
    )


ROUTES = (Route("GET", "/", Role.VIEWER, show_landing, is_page=True, is_costly=True),)
