"""The topics that the answer of a verb wakes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from windlass.core.job import Enqueued, Job, JobState, NewJob, OnConflict, Promoted
from windlass.core.topic import Topic
from windlass.core.transitions import Moved

_NONE: frozenset[Topic] = frozenset()
_WORK = frozenset({Topic.WORK})
_BY_STATE = {
    JobState.PENDING: _WORK,
    JobState.SCHEDULED: frozenset({Topic.DUE}),
    # Its worker learns what an operator did when it renews.
    JobState.RUNNING: frozenset({Topic.CONTROL}),
}


def work(answer: object) -> Collection[Topic]:
    """Wake the workers that claim, if the call changed anything; also right for a gate that has opened."""
    return _WORK if answer else _NONE


def by_states(states: Iterable[JobState]) -> Collection[Topic]:
    """Return the topics of jobs that were left in these states."""
    return _NONE.union(*(_BY_STATE.get(state, _NONE) for state in set(states)))


def by_jobs(left: Iterable[Job]) -> Collection[Topic]:
    """Return the topics of these jobs; a cancelled one that still has a lease has a worker to be woken."""
    return by_states(JobState.RUNNING if job.token is not None else job.state for job in left)


def by_move(moved: Moved) -> Collection[Topic]:
    """Return the topics of what an operator changed."""
    return by_jobs(moved.changed)


def by_promotion(promoted: Promoted) -> Collection[Topic]:
    """Wake the workers that claim, if anything became due."""
    return work(promoted.jobs)


def by_reclaim(taken: Sequence[int]) -> Collection[Topic]:
    """Wake the upkeep, which promotes what came back, and the worker that held it, if it still runs."""
    return {Topic.DUE, Topic.CONTROL} if taken else _NONE


def by_enqueue(jobs: Sequence[NewJob], answers: Sequence[Enqueued]) -> Collection[Topic]:
    """Wake the workers that claim, and for jobs with a time the upkeep."""
    pairs = zip(jobs, answers, strict=True)
    new = [job for job, answer in pairs if not answer.is_duplicate or job.on_conflict == OnConflict.REPLACE]
    timed = [job for job in new if job.run_at is not None or job.delay or job.recurrence is not None]
    # Of a time that was given, only the database knows whether it has come.
    topics = {Topic.WORK} if len(timed) < len(new) or not all(job.delay for job in timed) else set()
    return topics | {Topic.DUE} if timed else topics
