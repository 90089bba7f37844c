"""Jobs that belong together: by what they were asked for, and by who enqueued them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from windlass.core.job import Job, JobState, RunReason, RunStatus

MOST_RELATED = 500
MOST_RUNS = 10
"""How many runs of each job a trace has, the newest."""
_MILLISECOND = timedelta(milliseconds=1)


class Related(NamedTuple):
    """The jobs of one correlation, oldest first."""

    jobs: tuple[Job, ...]
    is_complete: bool


class Branch(NamedTuple):
    """A job and how far it is from the first of its tree."""

    job: Job
    depth: int


class JobRun(NamedTuple):
    """A run of a job that has ended, in short."""

    job_id: int
    number: int
    attempt: int
    status: RunStatus
    reason: RunReason | None
    worker: str
    started_at: datetime
    finished_at: datetime
    wait_ms: int
    error: str | None

    @property
    def duration_ms(self) -> int:
        """How long it took, in whole milliseconds."""
        return (self.finished_at - self.started_at) // _MILLISECOND


class ChildJob(NamedTuple):
    """A job that another one has enqueued, in short."""

    parent_id: int
    id: int
    state: JobState
    created_at: datetime


class NewestRuns(NamedTuple):
    """The newest ended runs and the newest children of some jobs, by job, the oldest first."""

    runs: Mapping[int, Sequence[JobRun]]
    children: Mapping[int, Sequence[ChildJob]]


class Span(NamedTuple):
    """A job of a trace with its newest runs, the oldest first."""

    job: Job
    depth: int
    runs: tuple[JobRun, ...]

    @property
    def began_at(self) -> datetime | None:
        """When its first known run began; None before that."""
        return self.runs[0].started_at if self.runs else self.job.started_at

    @property
    def ended_at(self) -> datetime | None:
        """When its last run ended, or when it was closed without one; None while it goes on."""
        if self.job.state is JobState.RUNNING:
            return None
        return self.job.closed_at or (self.runs[-1].finished_at if self.runs else None)

    def shown_until(self, now: datetime) -> datetime:
        """Return when its line ends in a picture: now, while it runs or waits to."""
        ended = self.ended_at
        is_over = self.job.closed_at is not None or self.job.cadence is not None
        return ended if ended is not None and is_over else max(now, self.job.created_at)

    @property
    def wait_ms(self) -> int | None:
        """How long it waited from the time it was due until its first known run; None before that."""
        if self.runs:
            return self.runs[0].wait_ms
        began = self.began_at
        return None if began is None else max(0, (began - self.job.run_at) // _MILLISECOND)

    def run_ms(self, now: datetime) -> int:
        """Return how long it has run in all, the run that goes on included."""
        ended = sum(run.duration_ms for run in self.runs)
        started = self.job.started_at if self.job.state is JobState.RUNNING else None
        return ended if started is None else ended + max(0, (now - started) // _MILLISECOND)


class Trace(NamedTuple):
    """The jobs of one correlation as a tree with their times: each before its children, the oldest first."""

    correlation_id: str
    at: datetime
    """When it was read, in database time."""
    spans: tuple[Span, ...]
    is_complete: bool
    last_id: int
    """The highest number on this page: the next page begins after it."""


class Tree(NamedTuple):
    """A job's first ancestor and what came of it, level by level."""

    branches: tuple[Branch, ...]
    is_complete: bool


def trace(jobs: Sequence[Job]) -> list[Branch]:
    """Put each job before those it enqueued, the oldest first; a parent that is not among them does not count.

    A parent is any number a client gave: of jobs in a circle the oldest is taken for the first.
    """
    children: dict[int | None, list[Job]] = defaultdict(list)
    known = {job.id for job in jobs}
    oldest_first = sorted(jobs, key=lambda job: job.id)
    for job in oldest_first:
        children[job.parent_id if job.parent_id in known else None].append(job)
    traced: dict[int, Branch] = {}
    for root in [*children[None], *oldest_first]:
        _descend(Branch(root, 0), children, traced)
    return list(traced.values())


def _descend(root: Branch, children: dict[int | None, list[Job]], traced: dict[int, Branch]) -> None:
    stack = [root]
    while stack:
        branch = stack.pop()
        if branch.job.id not in traced:
            traced[branch.job.id] = branch
            below = children.get(branch.job.id, ())
            stack.extend(Branch(child, branch.depth + 1) for child in reversed(below))
