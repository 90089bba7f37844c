"""The client's verbs for code without an event loop, from the same calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from random import Random
from typing import Any, Protocol, TypeVar

from windlass.core.job import Count, Edit, Enqueued, Execution, Held, Job, NewJob
from windlass.core.page import JobQuery, Page
from windlass.core.related import Related
from windlass.core.retry import PROFILES, Profile
from windlass.core.transitions import Moved
from windlass.errors import ExecutionNotFound, JobNotFound
from windlass.store import documents
from windlass.store.breakers import SyncBreakers
from windlass.store.calls import control, endings, lists, reads, related, work
from windlass.store.calls.call import Call
from windlass.store.calls.clone import clone
from windlass.store.letters import SyncLetters
from windlass.store.runs import SyncRuns

T = TypeVar("T")


class SyncDatabase(Protocol):
    """What a blocking store needs of its adapter."""

    def run_sync(self, call: Call[T]) -> T:
        """Run a call in a transaction of its own."""
        ...

    def run_on(self, connection: Any, call: Call[T]) -> T:
        """Run a call inside the caller's own transaction."""
        ...

    def close(self) -> None:
        """Let go of the database."""
        ...


class SyncStore:
    """What a client needs, blocking."""

    def __init__(self, database: SyncDatabase, *, rng: Random, profiles: Mapping[str, Profile] = PROFILES) -> None:
        """Speak to `database`; `profiles` say what rows leave open about retries."""
        self._db = database
        self._judge = work.Judge(rng, profiles)

    @property
    def runs(self) -> SyncRuns:
        """How runs went."""
        return SyncRuns(self._db)

    @property
    def database(self) -> SyncDatabase:
        """The adapter below."""
        return self._db

    @property
    def breakers(self) -> SyncBreakers:
        """The circuit breakers."""
        return SyncBreakers(self._db)

    @property
    def letters(self) -> SyncLetters:
        """What operators do with dead letters."""
        return SyncLetters(self._db)

    def close(self) -> None:
        """Let go of the database."""
        self._db.close()

    def clock(self, now: datetime | None = None) -> datetime:
        """Ask the database what time it is."""
        return self._db.run_sync(work.clock(now))

    def enqueue(self, jobs: Sequence[NewJob], now: datetime | None = None) -> list[Enqueued]:
        """Insert jobs, all or none; returns after the commit."""
        return self._db.run_sync(work.enqueue(jobs, now)) if jobs else []

    def enqueue_on(self, connection: Any, jobs: Sequence[NewJob], now: datetime | None = None) -> list[Enqueued]:
        """Insert jobs inside the caller's transaction: visible iff it commits."""
        return self._db.run_on(connection, work.enqueue(jobs, now)) if jobs else []

    def renew(
        self, leases: Sequence[tuple[int, int, datetime | None]], length: timedelta, now: datetime | None = None
    ) -> list[Held]:
        """Extend (id, token, started_at) leases; what does not come back is lost."""
        held: list[Held] = []
        for start in range(0, len(leases), documents.MAX_ROWS):
            part = self._db.run_sync(work.renew(leases[start : start + documents.MAX_ROWS], length, now))
            held += part
        return held

    def cancel(self, ids: Sequence[int], reason: str | None = None, now: datetime | None = None) -> Moved:
        """Cancel jobs at once."""
        return self._db.run_sync(control.cancel(ids, reason, now))

    def stop_run(self, ids: Sequence[int], now: datetime | None = None) -> Moved:
        """Ask running recurring jobs to end this run."""
        return self._db.run_sync(control.stop_run(ids, now))

    def pause(self, ids: Sequence[int], now: datetime | None = None) -> Moved:
        """Hold waiting jobs until they are resumed."""
        return self._db.run_sync(control.pause(ids, now))

    def resume(self, ids: Sequence[int], now: datetime | None = None) -> Moved:
        """Let paused jobs go on."""
        return self._db.run_sync(control.resume(ids, now))

    def disable(self, ids: Sequence[int], now: datetime | None = None) -> Moved:
        """Stop jobs from running by themselves."""
        return self._db.run_sync(control.disable(ids, now))

    def enable(self, ids: Sequence[int], now: datetime | None = None) -> Moved:
        """Undo `disable`."""
        return self._db.run_sync(control.enable(ids, now))

    def run_now(self, ids: Sequence[int], now: datetime | None = None) -> Moved:
        """Run waiting jobs now, running ones once more after their run."""
        return self._db.run_sync(control.run_now(ids, now))

    def retry(self, ids: Sequence[int], now: datetime | None = None) -> Moved:
        """Start failed jobs afresh."""
        return self._db.run_sync(control.retry(ids, now))

    def boost(self, ids: Sequence[int], amount: int, now: datetime | None = None) -> Moved:
        """Raise the priority of jobs that are not over, up to 100."""
        return self._db.run_sync(control.boost(ids, amount, now))

    def set_priority(self, ids: Sequence[int], priority: int, now: datetime | None = None) -> Moved:
        """Give jobs that are not over a new priority."""
        return self._db.run_sync(control.set_priority(ids, priority, now))

    def clone(self, ids: Sequence[int], created_by: str | None = None, now: datetime | None = None) -> Moved:
        """Make new jobs from finished ones."""
        return self._db.run_sync(clone(ids, created_by, now))

    def delete(self, ids: Sequence[int]) -> Moved:
        """Remove jobs that nobody holds."""
        return self._db.run_sync(control.delete(ids))

    def bury(self, ids: Sequence[int], error: str, now: datetime | None = None) -> Moved:
        """Fail waiting jobs for good."""
        return self._db.run_sync(endings.bury(ids, error, now))

    def fail(self, ids: Sequence[int], error: str, *, will_retry: bool, now: datetime | None = None) -> Moved:
        """End runs as failed; waiting jobs only for good."""
        return self._db.run_sync(endings.fail(ids, error, will_retry=will_retry, judge=self._judge, now=now))

    def edit(self, job_id: int, changes: Edit, now: datetime | None = None) -> Moved:
        """Change a job."""
        return self._db.run_sync(control.edit(job_id, changes, now))

    def get(self, job_id: int) -> Job:
        """Read one job; raises JobNotFound."""
        found = self._db.run_sync(reads.get_jobs([job_id]))
        if not found:
            raise JobNotFound(job_id)
        return found[0]

    def list_jobs(self, query: JobQuery | None = None) -> Page:
        """Read a page of jobs; without a query, the newest."""
        return self._db.run_sync(lists.list_jobs(query or JobQuery()))

    def list_by_correlation(self, correlation_id: str) -> Related:
        """Read the jobs of one correlation, oldest first; a job's own UUID means the job and its children."""
        return self._db.run_sync(related.list_by_correlation(correlation_id))

    def list_executions(self, job_id: int, *, limit: int = reads.MAX_LIST, offset: int = 0) -> list[Execution]:
        """Read a job's runs, the one that goes on first, then newest first."""
        return self._db.run_sync(reads.list_executions(job_id, limit=limit, offset=offset))

    def get_execution(self, job_id: int, number: int) -> Execution:
        """Read one run; raises ExecutionNotFound."""
        found = self._db.run_sync(reads.get_execution(job_id, number))
        if not found:
            raise ExecutionNotFound(job_id, number)
        return found[0]

    def count_jobs(self) -> list[Count]:
        """Count jobs by task, lane, state and reason."""
        return self._db.run_sync(reads.count_jobs())
