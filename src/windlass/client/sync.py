"""The same verbs for code without an event loop."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Unpack

from windlass.client.blocking import run
from windlass.client.client import Client
from windlass.client.options import EditOptions, UsingOptions
from windlass.client.refs import JobRef
from windlass.core.job import Count, DeadLetter, Enqueued, Execution, Job, NewJob
from windlass.core.page import JobQuery, Page
from windlass.core.runs import QueueStats


class SyncVerbs:
    """Each verb of `Client` as a plain function, named with `_sync`."""

    _twin: Client

    def enqueue_sync(self, task: str, payload: Mapping[str, Any] | None = None, **options: Unpack[UsingOptions]) -> Enqueued:
        """Enqueue a job of a task by its name."""
        return run(self._twin.enqueue(task, payload, **options))

    def enqueue_jobs_sync(self, jobs: Iterable[NewJob], connection: Any = None) -> Sequence[Enqueued]:
        """Enqueue jobs of any tasks, all or none, in one round trip."""
        return run(self._twin.enqueue_jobs(jobs, connection))

    def get_sync(self, job: JobRef) -> Job:
        """Read a job."""
        return run(self._twin.get(job))

    def list_sync(self, query: JobQuery | None = None) -> Page:
        """Read a page of jobs; without a query, the newest."""
        return run(self._twin.list(query))

    def executions_sync(self, job: JobRef, *, limit: int = 100) -> Sequence[Execution]:
        """Read a job's ended runs, newest first."""
        return run(self._twin.executions(job, limit=limit))

    def dead_letters_of_sync(self, job: JobRef) -> Sequence[DeadLetter]:
        """Read a job's dead letters, oldest first."""
        return run(self._twin.dead_letters_of(job))

    def counts_sync(self) -> Sequence[Count]:
        """Count jobs by task, lane, state and reason."""
        return run(self._twin.counts())

    def stats_sync(self) -> QueueStats:
        """Sum up the queue."""
        return run(self._twin.stats())

    def cancel_sync(self, job: JobRef, reason: str | None = None) -> Job:
        """Cancel a job at once."""
        return run(self._twin.cancel(job, reason))

    def stop_sync(self, job: JobRef) -> Job:
        """Ask a running recurring job to end this run."""
        return run(self._twin.stop(job))

    def pause_sync(self, job: JobRef) -> Job:
        """Hold a waiting job until it is resumed."""
        return run(self._twin.pause(job))

    def resume_sync(self, job: JobRef) -> Job:
        """Let a paused job go on."""
        return run(self._twin.resume(job))

    def disable_sync(self, job: JobRef) -> Job:
        """Stop a job from running by itself."""
        return run(self._twin.disable(job))

    def enable_sync(self, job: JobRef) -> Job:
        """Undo `disable_sync`."""
        return run(self._twin.enable(job))

    def run_now_sync(self, job: JobRef) -> Job:
        """Run a waiting job now, a running one once more after its run."""
        return run(self._twin.run_now(job))

    def retry_sync(self, job: JobRef) -> Job:
        """Start a failed job afresh."""
        return run(self._twin.retry(job))

    def edit_sync(self, job: JobRef, **changes: Unpack[EditOptions]) -> Job:
        """Change a job."""
        return run(self._twin.edit(job, **changes))

    def wait_sync(self, job: JobRef, timeout: str | float | timedelta | None = None) -> Any:
        """Wait until a job has ended and return its result."""
        return run(self._twin.wait(job, timeout))
