"""What an enqueue of a task returns: the job, and access to its result with the type that the task declares."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, overload

from windlass.core.blocking import run
from windlass.core.job import Enqueued

if TYPE_CHECKING:
    from windlass.client.client import DatabaseClient

P = ParamSpec("P")
T_co = TypeVar("T_co", covariant=True)
Timeout = str | float | timedelta | None


class EnqueuedJob(Enqueued, Generic[T_co]):
    """The job that an enqueue of a task led to; a duplicate is the one that held the key."""

    _clients: tuple[DatabaseClient, DatabaseClient]

    @classmethod
    def of(cls, enqueued: Enqueued, clients: tuple[DatabaseClient, DatabaseClient]) -> EnqueuedJob[Any]:
        """Keep the clients that read the result: one for asyncio, one for blocking code."""
        made = cls(*enqueued)
        made._clients = clients
        return made

    def __reduce__(self) -> tuple[type[Enqueued], tuple[int, bool]]:
        # Another process has other clients.
        return Enqueued, (self.id, self.is_duplicate)

    async def result(self, timeout: Timeout = None) -> T_co:  # noqa: ASYNC109 - a limit on the job, as `app.wait` has it
        """Wait until the job has ended and return its result; raises JobFailed, JobCancelled or WaitTimeout."""
        value: T_co = await self._clients[0].wait(self, timeout)
        return value

    def result_sync(self, timeout: Timeout = None) -> T_co:
        """Do what `result` does, without an event loop."""
        value: T_co = run(self._clients[1].wait(self, timeout))
        return value


class EnqueuedJobs(Sequence[EnqueuedJob[T_co]]):
    """The jobs that a bulk enqueue led to; each is made when it is asked for, as most callers count them or keep none."""

    def __init__(self, answers: Sequence[Enqueued], clients: tuple[DatabaseClient, DatabaseClient]) -> None:
        """Keep what the store answered, and the way to the results."""
        self._answers = answers
        self._clients = clients

    def __len__(self) -> int:
        return len(self._answers)

    @overload
    def __getitem__(self, place: int) -> EnqueuedJob[T_co]: ...

    @overload
    def __getitem__(self, place: slice) -> EnqueuedJobs[T_co]: ...

    def __getitem__(self, place: int | slice) -> EnqueuedJob[T_co] | EnqueuedJobs[T_co]:
        if isinstance(place, slice):
            return EnqueuedJobs(self._answers[place], self._clients)
        return EnqueuedJob.of(self._answers[place], self._clients)

    def __eq__(self, other: object) -> bool:
        return list(self._answers) == list(other) if isinstance(other, Sequence) else NotImplemented

    __hash__ = None  # type: ignore[assignment]  # as a list, with which it compares

    def __repr__(self) -> str:
        return repr(list(self))

    def __reduce__(self) -> tuple[type[list[Enqueued]], tuple[list[Enqueued]]]:
        # As one of them does.
        return list, (list(self._answers),)


class TaskCall(Generic[P]):
    """The arguments of one job, checked against the task's parameters by a type checker."""

    __slots__ = ("arguments",)

    def __init__(self, arguments: dict[str, Any]) -> None:
        """Keep arguments by name."""
        self.arguments = arguments
