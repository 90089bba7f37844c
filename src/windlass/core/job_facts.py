"""What the database knows of one job at one moment; its explanation is made of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from datetime import datetime, timedelta
from typing import NamedTuple

from windlass.core.explanation import MOST_BEFORE
from windlass.core.fleet_facts import EndedRuns, FleetFacts
from windlass.core.job import Execution, Job, JobState, RunStatus
from windlass.core.outcome import Failure, fingerprint
from windlass.core.record import record

LATELY = timedelta(hours=1)
"""How far back the length of runs is measured."""
WATCHED = timedelta(minutes=15)
"""How far back the pace of a queue is measured, while it was a queue."""


class KeyHolder(NamedTuple):
    """The job that holds a unique key."""

    id: int
    state: JobState


class NewestLetter(NamedTuple):
    """The newest dead letter of a job."""

    id: int
    error: str
    fingerprint: str
    died_at: datetime
    is_open: bool


class AlikeLetters(NamedTuple):
    """The dead letters of one kind of failure, as many as were looked at, and how their jobs ended after they came back."""

    letters: int
    deaths: int
    first_at: datetime | None
    last_at: datetime | None
    came_back: int
    succeeded: int
    failed_again: int

    @property
    def is_exact(self) -> bool:
        """Whether all were looked at."""
        return self.letters <= MOST_BEFORE


@record(kw_only=True)
class JobFacts:
    """A job, its newest runs, and what is around it."""

    fleet: FleetFacts
    job: Job
    most_attempts: int
    runs: Sequence[Execution] = ()
    """The newest first, the one that goes on included."""
    holder: KeyHolder | None = None
    """Another job that holds the unique key of this one, or the key of a template's jobs."""
    before: Mapping[str, int] = field(default_factory=dict)
    """By task, how many due jobs of its lane that nothing holds back come before it; counted up to a bound."""
    lately: Mapping[str, EndedRuns] = field(default_factory=dict)
    """By task, the runs that ended within the last hour: of this task, and of those that come before."""
    while_due: EndedRuns = field(default_factory=EndedRuns)
    """The runs of the same tasks that ended while this job was due, at most within the last quarter of an hour."""
    letter: NewestLetter | None = None
    alike: AlikeLetters | None = None
    since_failure: EndedRuns = field(default_factory=EndedRuns)
    """Runs of the task that ended since the last failure of this kind."""

    @property
    def jobs_before(self) -> int:
        """How many jobs come before it; more than the bound is not exact."""
        return sum(self.before.values())

    @property
    def last_failed(self) -> Execution | None:
        """The newest run that failed."""
        return next((run for run in self.runs if run.status is RunStatus.FAILED), None)


def kind_of(task: str, run: Execution | None) -> str | None:
    """Name the kind of a failed run, as dead letters do."""
    if run is None or run.error is None:
        return None
    return fingerprint(task, Failure(run.error, run.error_type or ""))
