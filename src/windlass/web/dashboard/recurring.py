"""The recurring jobs: when they run, how their last runs went, and a form to make one."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, NamedTuple

from fastapi import Query, Request, Response

from windlass.core.access import Role
from windlass.core.cadence import Every, Misfire, Recurrence
from windlass.core.cadence_text import describe
from windlass.core.filter import JobFilter
from windlass.core.job import Job, JobState
from windlass.core.page import JobQuery
from windlass.core.preview import MOST_MISSED, Fire, count_missed, fires_from, preview
from windlass.core.related import NewestRuns
from windlass.core.transitions import MOVES
from windlass.errors import InvalidInput
from windlass.store.stored_jobs import StoredJobs
from windlass.web.dashboard import times
from windlass.web.dashboard.frame import draw, now
from windlass.web.request_context import reader_of
from windlass.web.route import Route

_SIZE = 50
_RUNS = 12
_TIMES = 5
_TASKS = 500
_WAITING = (JobState.PENDING, JobState.SCHEDULED)
LATE = {
    Misfire.ONCE: "runs once for all it missed",
    Misfire.SKIP: "leaves out what it missed",
    Misfire.ALL: "runs each time it missed",
}
"""What a job does about times that have passed."""


class PastRun(NamedTuple):
    """A run of a job, or a job that a template has enqueued."""

    state: str
    text: str
    job: int


class RecurringRow(NamedTuple):
    """A recurring job with its last runs, the oldest first."""

    job: Job
    cadence: str
    rule: Recurrence | None
    """None where what is stored cannot be read."""
    runs: list[PastRun]
    times: list[Fire]
    missed: int
    may_pause: bool
    may_disable: bool
    """It runs: it can only be paused after this run."""
    may_edit: bool

    @property
    def every(self) -> str:
        """The period as it was written; empty for any other cadence."""
        has_period = self.rule is not None and isinstance(self.rule.cadence, Every)
        return str(self.rule.cadence).removeprefix("@every ") if self.rule is not None and has_period else ""

    @property
    def cron(self) -> str:
        """The cadence as it was written; empty for a period."""
        return str(self.rule.cadence) if self.rule is not None and not self.every else ""


def rule_of(job: Job) -> Recurrence | None:
    """Read the rule of a job; None where it cannot be read."""
    try:
        return job.recurrence
    except InvalidInput:
        return None


def in_words(job: Job) -> str:
    """Describe when a job repeats; what cannot be read is shown as it is stored."""
    rule = rule_of(job)
    return job.cadence or "" if rule is None else describe(rule.cadence, rule.timezone)


def _times(job: Job, rule: Recurrence | None, at: datetime) -> list[Fire]:
    if rule is None or job.state not in {*_WAITING, JobState.RUNNING}:
        return []
    if job.state is JobState.RUNNING:
        return preview(rule, at, _TIMES)
    return fires_from(rule, job.slot_at or job.run_at, _TIMES, completed_runs=job.completed_runs)


def _past(job: Job, past: NewestRuns, at: datetime) -> list[PastRun]:
    if job.spawn:
        return [
            PastRun(one.state.value, f"job {one.id}: {one.state.value}, made {times.age(one.created_at, at)} ago", one.id)
            for one in past.children.get(job.id, ())
        ]
    runs = [
        PastRun(
            run.status.value,
            f"run {run.number}: {run.status.value}, {times.short_ms(run.duration_ms)}, began {times.age(run.started_at, at)} ago",
            job.id,
        )
        for run in past.runs.get(job.id, ())
    ]
    if job.state is JobState.RUNNING and job.started_at is not None:
        began = times.age(job.started_at, at)
        runs.append(PastRun("running", f"run {job.executions}: running, not over, began {began} ago", job.id))
    return runs


async def show_recurring(request: Request, cursor: Annotated[str | None, Query(max_length=200)] = None) -> Response:
    """Show the recurring jobs."""
    reader = reader_of(request)
    at = await now(request)
    found = await reader.list(JobQuery(filter=JobFilter(is_recurring=True), limit=_SIZE, cursor=cursor))
    templates = [job.id for job in found.jobs if job.spawn]
    others = [job.id for job in found.jobs if job.executions and not job.spawn]
    past = await StoredJobs(reader).read_past(others, templates, limit=_RUNS)
    rows = []
    for job in found.jobs:
        rule = rule_of(job)
        is_waiting = rule is not None and job.state in _WAITING
        rows.append(
            RecurringRow(
                job=job,
                cadence=in_words(job),
                rule=rule,
                runs=_past(job, past, at),
                times=_times(job, rule, at),
                missed=count_missed(rule, job.slot_at or job.run_at, at) if rule is not None and is_waiting else 0,
                may_pause=MOVES["pause"].allows(job),
                may_disable=job.state is JobState.RUNNING and not job.held,
                may_edit=rule is not None and MOVES["edit"].allows(job),
            )
        )
    return draw(
        request,
        "recurring.html",
        at,
        here="/recurring",
        title="Recurring jobs",
        rows=rows,
        found=found,
        late=LATE,
        most_missed=MOST_MISSED,
        tasks=[task.name for task in await reader.known_tasks.list(limit=_TASKS)],
    )


ROUTES = (Route("GET", "/recurring", Role.VIEWER, show_recurring, is_page=True, is_costly=True),)
