"""What operators do beyond moving a job: endings by hand, dead letters, breakers.

The verbs of `Operations` belong to the store's port; once they are there, this protocol goes and `_operations` is `_store`.
"""

# ruff: noqa: D102 - the protocols only repeat what other branches document

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Protocol, cast

from windlass.client.client import Client
from windlass.client.refs import JobRef, number_of
from windlass.core.durations import parse_duration
from windlass.core.job import DeadLetter, Job
from windlass.core.transitions import Moved


class LetterVerbs(Protocol):
    """Dead letters in the store."""

    async def acknowledge(self, ids: Sequence[int], *, by: str, note: str | None = None) -> Any: ...

    async def requeue(self, ids: Sequence[int]) -> Any: ...

    async def get(self, letter_id: int) -> DeadLetter: ...

    async def list(self, query: Any = None) -> Any: ...


class BreakerVerbs(Protocol):
    """Breakers in the store."""

    async def admit(self, spec: Any, *, job_id: int | None = None, token: int | None = None) -> Any: ...

    async def record(self, spec: Any, *, succeeded: bool, failures: int = 0, token: int | None = None) -> Any: ...

    async def get(self, name: str) -> Any: ...

    async def list(self) -> Sequence[Any]: ...

    async def reset(self, name: str) -> Any: ...

    async def force_open(self, name: str, for_: timedelta | None = None) -> Any: ...


class Operations(Protocol):
    """The verbs that come with the operator, breaker and list branches."""

    @property
    def letters(self) -> LetterVerbs: ...

    @property
    def breakers(self) -> BreakerVerbs: ...

    async def boost(self, ids: Sequence[int], amount: int) -> Moved: ...

    async def clone(self, ids: Sequence[int], created_by: str | None = None) -> Moved: ...

    async def delete(self, ids: Sequence[int]) -> Moved: ...

    async def bury(self, ids: Sequence[int], error: str) -> Moved: ...

    async def fail(self, ids: Sequence[int], error: str, *, will_retry: bool) -> Moved: ...

    async def list_by_correlation(self, correlation_id: str) -> Any: ...


class Operator(Client):
    """A client with an operator's verbs."""

    async def operations(self) -> Operations:
        """Give the store with these verbs."""
        return cast("Operations", await self._store())

    async def boost(self, job: JobRef, amount: int = 10) -> Job:
        """Raise the priority of a job that is not over, up to 100."""
        return (await (await self.operations()).boost([number_of(job)], amount)).one()

    async def clone(self, job: JobRef, created_by: str | None = None) -> Job:
        """Make a new job from a finished one."""
        return (await (await self.operations()).clone([number_of(job)], created_by)).one()

    async def delete(self, job: JobRef) -> Job:
        """Remove a job that nobody holds; the answer is the job as it was."""
        return (await (await self.operations()).delete([number_of(job)])).one()

    async def bury(self, job: JobRef, error: str) -> Job:
        """Fail a waiting job for good, with a dead letter."""
        return (await (await self.operations()).bury([number_of(job)], error)).one()

    async def fail(self, job: JobRef, error: str, *, will_retry: bool = True) -> Job:
        """End a run as failed, by its retry policy or for good; a waiting job only for good."""
        return (await (await self.operations()).fail([number_of(job)], error, will_retry=will_retry)).one()

    async def jobs_by_correlation(self, correlation_id: str) -> Sequence[Job]:
        """Read every job with this correlation id, oldest first; a job's own UUID finds it and its children."""
        jobs: Sequence[Job] = (await (await self.operations()).list_by_correlation(correlation_id)).jobs
        return jobs

    async def dead_letters(self, query: Any = None) -> Any:
        """Read a page of dead letters, newest death first."""
        return await (await self.operations()).letters.list(query)

    async def get_letter(self, letter: int) -> DeadLetter:
        """Read a dead letter."""
        return await (await self.operations()).letters.get(letter)

    async def acknowledge(self, letter: int, *, by: str, note: str | None = None) -> DeadLetter:
        """Note who has seen a dead letter."""
        found: DeadLetter = (await (await self.operations()).letters.acknowledge([letter], by=by, note=note)).one()
        return found

    async def requeue(self, letter: int) -> DeadLetter:
        """Bring back the job of an open dead letter."""
        found: DeadLetter = (await (await self.operations()).letters.requeue([letter])).one()
        return found

    async def breakers(self) -> Sequence[Any]:
        """Read the breakers that ever left closed, by name."""
        return await (await self.operations()).breakers.list()

    async def get_breaker(self, name: str) -> Any:
        """Read one breaker; None when it has never left closed."""
        return await (await self.operations()).breakers.get(name)

    async def reset_breaker(self, name: str) -> Any:
        """Close a breaker, whoever is trying it."""
        return await (await self.operations()).breakers.reset(name)

    async def force_open(self, name: str, for_: str | float | timedelta | None = None) -> Any:
        """Open a breaker: for a while, or until it is reset."""
        wait = None if for_ is None else parse_duration(for_, field="for_")
        return await (await self.operations()).breakers.force_open(name, wait)
