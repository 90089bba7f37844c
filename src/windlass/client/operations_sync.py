"""The operator's verbs for code without an event loop."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from windlass.client.blocking import run
from windlass.client.operations import Operator
from windlass.client.refs import JobRef
from windlass.client.sync import SyncVerbs
from windlass.core.job import DeadLetter, Job


class SyncOperator(SyncVerbs):
    """Each verb of `Operator` as a plain function, named with `_sync`."""

    _twin: Operator

    def boost_sync(self, job: JobRef, amount: int = 10) -> Job:
        """Raise the priority of a job that is not over."""
        return run(self._twin.boost(job, amount))

    def clone_sync(self, job: JobRef, created_by: str | None = None) -> Job:
        """Make a new job from a finished one."""
        return run(self._twin.clone(job, created_by))

    def delete_sync(self, job: JobRef) -> Job:
        """Remove a job that nobody holds."""
        return run(self._twin.delete(job))

    def bury_sync(self, job: JobRef, error: str) -> Job:
        """Fail a waiting job for good."""
        return run(self._twin.bury(job, error))

    def fail_sync(self, job: JobRef, error: str, *, will_retry: bool = True) -> Job:
        """End a run as failed."""
        return run(self._twin.fail(job, error, will_retry=will_retry))

    def jobs_by_correlation_sync(self, correlation_id: str) -> Sequence[Job]:
        """Read every job with this correlation id."""
        return run(self._twin.jobs_by_correlation(correlation_id))

    def dead_letters_sync(self, query: Any = None) -> Any:
        """Read a page of dead letters, newest death first."""
        return run(self._twin.dead_letters(query))

    def get_letter_sync(self, letter: int) -> DeadLetter:
        """Read a dead letter."""
        return run(self._twin.get_letter(letter))

    def acknowledge_sync(self, letter: int, *, by: str, note: str | None = None) -> DeadLetter:
        """Note who has seen a dead letter."""
        return run(self._twin.acknowledge(letter, by=by, note=note))

    def requeue_sync(self, letter: int) -> DeadLetter:
        """Bring back the job of an open dead letter."""
        return run(self._twin.requeue(letter))

    def breakers_sync(self) -> Sequence[Any]:
        """Read the breakers that ever left closed."""
        return run(self._twin.breakers())

    def get_breaker_sync(self, name: str) -> Any:
        """Read one breaker."""
        return run(self._twin.get_breaker(name))

    def reset_breaker_sync(self, name: str) -> Any:
        """Close a breaker."""
        return run(self._twin.reset_breaker(name))

    def force_open_sync(self, name: str, for_: str | float | timedelta | None = None) -> Any:
        """Open a breaker."""
        return run(self._twin.force_open(name, for_))
