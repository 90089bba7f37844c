"""Changes of jobs as they happen, found by looking: the same on both databases, and a look reads a bounded number of rows."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import NamedTuple

from windlass.core.blocking import run
from windlass.core.filter import JobFilter, StateFilter
from windlass.core.job import CLOSED, Job, JobState, WaitReason
from windlass.core.page import JobQuery, Sort
from windlass.store import Store

_PAGE = 200
_MOST_PAGES = 5
_MOST_AT_ONCE = 500
_MOST_KNOWN = 20_000
# Counts stay the same when one job is paused and another resumed: look now and then all the same.
_QUIET_LOOKS = 10
# Rows are written by several transactions, which need not commit in the order of their times.
_SLACK = timedelta(seconds=5)
_REASONS = frozenset({WaitReason.RETRY, WaitReason.LOST, WaitReason.SNOOZE, WaitReason.RELEASED, WaitReason.OPERATOR})
_WAITING = (StateFilter(JobState.PENDING), StateFilter(JobState.PAUSED), StateFilter(JobState.SCHEDULED, _REASONS))
_RUNNING = (StateFilter(JobState.RUNNING),)
_ENDED = tuple(StateFilter(state) for state in sorted(CLOSED))


class JobEvent(NamedTuple):
    """A job that is in another state than at the look before."""

    at: datetime
    job: Job
    was: JobState | None
    """None for a job that was not seen before."""


class _Known(NamedTuple):
    state: JobState
    executions: int


class JobEvents:
    """Finds what changed since the look before.

    The end of a job is always found, and so is a new job, up to a thousand of each in a look. A state that a job had for
    less than the time between two looks may be missed.
    """

    def __init__(self, store: Store, tasks: Sequence[str] = (), lanes: Sequence[str] = ()) -> None:
        """Note the state now in a store that blocks; what happens from here on is an event."""
        self._store = store
        self._tasks, self._lanes = tuple(tasks), tuple(lanes)
        self._known: OrderedDict[int, _Known] = OrderedDict()
        self._counts: object = None
        self._quiet = 0
        self.is_cut = False
        """Whether the last look had to leave out some changes."""
        self._started = self._since = run(self._store.clock())
        for job in self._found():
            self._note(job)

    def look(self) -> list[JobEvent]:
        """Return the changes since the look before, oldest first."""
        self.is_cut = False
        if not self._has_changed():
            return []
        looked_at = run(self._store.clock())
        events = [event for job in self._found() if (event := self._event(job)) is not None]
        self._since = max(self._started, looked_at - _SLACK)
        return sorted(events, key=lambda one: (one.at, one.job.id))

    def _has_changed(self) -> bool:
        """Whether anything may have changed; the counts are a few rows, however many jobs there are."""
        counts = (run(self._store.count_jobs()), run(self._store.runs.totals()))
        self._quiet = self._quiet + 1 if counts == self._counts else 0
        self._counts = counts
        return self._quiet % _QUIET_LOOKS == 0

    def _event(self, job: Job) -> JobEvent | None:
        before = self._known.get(job.id)
        is_new = before is None and job.updated_at >= self._since
        is_moved = before is not None and before != (job.state, job.executions)
        self._note(job)
        return JobEvent(_changed_at(job), job, None if before is None else before.state) if is_new or is_moved else None

    def _note(self, job: Job) -> None:
        self._known[job.id] = _Known(job.state, job.executions)
        self._known.move_to_end(job.id)
        while len(self._known) > _MOST_KNOWN:
            self._known.popitem(last=False)

    def _found(self) -> Iterator[Job]:
        """Read the jobs that may have changed, each once."""
        sources = (
            self._ended(),
            self._list(_RUNNING),
            self._list(_WAITING),
            self._newest(JobQuery(filter=JobFilter(tasks=self._tasks, lanes=self._lanes), limit=_PAGE)),
        )
        seen: set[int] = set()
        for source in sources:
            for job in source:
                if job.id not in seen:
                    seen.add(job.id)
                    yield job
        yield from self._left(seen)

    def _list(self, states: tuple[StateFilter, ...]) -> Sequence[Job]:
        jobs = JobFilter(tasks=self._tasks, lanes=self._lanes, states=states)
        return run(self._store.list_jobs(JobQuery(filter=jobs, limit=_MOST_AT_ONCE))).jobs

    def _ended(self) -> Iterator[Job]:
        """Read what has ended; by the index of ends, which has no tasks and lanes."""
        for job in self._newest(JobQuery(filter=JobFilter(states=_ENDED), sort=Sort.COMPLETED_AT, limit=_PAGE)):
            if (not self._tasks or job.task in self._tasks) and (not self._lanes or job.lane in self._lanes):
                yield job

    def _newest(self, query: JobQuery) -> Iterator[Job]:
        """Read pages from the newest on, for as long as a page ends with something new."""
        for _ in range(_MOST_PAGES):
            page = run(self._store.list_jobs(query))
            yield from page.jobs
            if page.next_cursor is None or self._is_old(page.jobs[-1]):
                return
            query = replace(query, cursor=page.next_cursor)
        self.is_cut = True

    def _is_old(self, job: Job) -> bool:
        # The first look reads what was there before, and need not read all of it.
        return self._counts is None or _changed_at(job) < self._since

    def _left(self, seen: set[int]) -> Sequence[Job]:
        """Read again what ran at the look before and is nowhere now: it waits for its next time."""
        gone = [job_id for job_id, one in self._known.items() if one.state is JobState.RUNNING and job_id not in seen]
        return run(self._store.get_many(gone[:_MOST_AT_ONCE])) if gone else []


def _changed_at(job: Job) -> datetime:
    """Return when a job came to its state, as far as its row shows."""
    if job.state in CLOSED:
        return job.closed_at or job.updated_at
    if job.state is JobState.RUNNING:
        return job.started_at or job.claimed_at or job.updated_at
    return job.updated_at if job.executions else job.created_at
