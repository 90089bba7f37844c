"""Single enqueues that come at the same time share a commit; none waits for others to come."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future
from typing import Any, Generic, Protocol, TypeVar

from windlass.core.blocking import run
from windlass.core.current import detached
from windlass.core.job import NewJob, OnConflict
from windlass.errors import StoreError, StoreUnavailable

MOST = 500

A = TypeVar("A")
Send = Callable[[Sequence[NewJob]], Coroutine[Any, Any, list[A]]]


A_co = TypeVar("A_co", covariant=True)


class Outbox(Protocol[A_co]):
    """Takes single jobs and answers after their commit."""

    async def enqueue(self, job: NewJob) -> A_co:
        """Enqueue a job, together with what else is waiting."""
        ...


class _Waiter(Protocol):
    """What waits for an answer: a future of either kind."""

    def cancelled(self) -> bool: ...

    def done(self) -> bool: ...

    def set_result(self, answer: Any, /) -> None: ...

    def set_exception(self, error: BaseException, /) -> None: ...


W = TypeVar("W", bound=_Waiter)


class OutboxEntry(Generic[W]):
    """A job to be sent, and the future of its caller."""

    __slots__ = ("job", "waiter")

    def __init__(self, job: NewJob, waiter: W) -> None:
        self.job = job
        self.waiter = waiter


def goes_alone(job: NewJob) -> bool:
    """Whether a job may be refused for a reason of its own, which must not fail the others of its group."""
    return job.on_conflict is OnConflict.REJECT or job.recurrence is not None


def _order(entry: OutboxEntry[Any]) -> tuple[str, str]:
    # Two processes that insert the same keys in different order would deadlock.
    return entry.job.task if entry.job.unique_key else "", entry.job.unique_key or ""


async def _answers(send: Send[A], jobs: Sequence[NewJob]) -> Sequence[A | BaseException]:
    """Send a group; if it is refused, each job alone, so that only the bad one fails."""
    try:
        return await send(jobs)
    except StoreUnavailable as error:
        return [StoreUnavailable(str(error)) for _ in jobs]
    except Exception as error:  # noqa: BLE001 - handed to the caller whose job it was
        if len(jobs) == 1:
            return [error]
    return [answer for job in jobs for answer in await _answers(send, [job])]


def _deliver(entries: Sequence[OutboxEntry[W]], answers: Sequence[object]) -> None:
    for entry, answer in zip(entries, answers, strict=True):
        if entry.waiter.done():
            continue
        if isinstance(answer, BaseException):
            entry.waiter.set_exception(answer)
        else:
            entry.waiter.set_result(answer)


class LoopOutbox(Generic[A]):
    """The outbox of one event loop."""

    def __init__(self, send: Send[A]) -> None:
        """Send groups with `send`."""
        self._send = send
        self._waiting: deque[OutboxEntry[asyncio.Future[A]]] = deque()
        # Held here for as long as it runs: a caller that gives up must not take the others' flush with it.
        self._flusher: asyncio.Task[None] | None = None
        self._is_lonely = False
        """Whether the last caller found no other: then the next sends its job itself, two turns of the loop sooner."""
        self._is_busy = False

    async def enqueue(self, job: NewJob) -> A:
        """Enqueue a job, together with what else is waiting."""
        if goes_alone(job):
            [answer] = await self._send([job])
            return answer
        if self._is_lonely and not self._is_busy:
            return await self._send_alone(job)
        entry: OutboxEntry[asyncio.Future[A]] = OutboxEntry(job, asyncio.get_running_loop().create_future())
        self._waiting.append(entry)
        if not self._is_busy:
            self._start_flush()
        return await entry.waiter

    async def _send_alone(self, job: NewJob) -> A:
        self._is_busy = True
        try:
            [answer] = await self._send([job])
        finally:
            self._is_busy = False
            if self._waiting:
                self._start_flush()
        return answer

    def _start_flush(self) -> None:
        self._is_busy = True
        # It sends for all callers, so it may not end with the run whose handler happened to come first.
        with detached():
            self._flusher = asyncio.get_running_loop().create_task(self._flush(), name="windlass-outbox")

    async def _flush(self) -> None:
        try:
            while entries := self._take():
                self._is_lonely = len(entries) == 1
                try:
                    answers = await _answers(self._send, [entry.job for entry in entries])
                except BaseException as error:
                    _deliver(entries, [_interrupted(error) for _ in entries])
                    raise
                _deliver(entries, answers)
        finally:
            self._flusher = None
            self._is_busy = False
            _deliver(self._waiting, [_interrupted(None) for _ in self._waiting])
            self._waiting.clear()

    def _take(self) -> list[OutboxEntry[asyncio.Future[A]]]:
        taken = [self._waiting.popleft() for _ in range(min(MOST, len(self._waiting)))]
        return sorted((entry for entry in taken if not entry.waiter.cancelled()), key=_order) or (
            self._take() if self._waiting else []
        )


class ThreadOutbox(Generic[A]):
    """The outbox of all threads of a process: the first to come sends for those that come meanwhile."""

    def __init__(self, send: Send[A]) -> None:
        """Send groups with `send`, whose coroutines never suspend."""
        self._send = send
        self._lock = threading.Lock()
        self._waiting: deque[OutboxEntry[Future[A | None]]] = deque()
        self._is_busy = False

    async def enqueue(self, job: NewJob) -> A:
        """Enqueue a job, together with what other threads bring."""
        if goes_alone(job):
            [alone] = await self._send([job])
            return alone
        entry: OutboxEntry[Future[A | None]] = OutboxEntry(job, Future())
        with self._lock:
            leads, self._is_busy = not self._is_busy, True
            if not leads:
                self._waiting.append(entry)
        # None means that the previous sender has finished and this thread sends next.
        answer = None if leads else entry.waiter.result()
        return self._lead(entry) if answer is None else answer

    def _lead(self, own: OutboxEntry[Future[A | None]]) -> A:
        with self._lock:
            others = [self._waiting.popleft() for _ in range(min(MOST - 1, len(self._waiting)))]
        own.waiter = Future()
        entries = sorted([own, *others], key=_order)
        try:
            sending = _answers(self._send, [entry.job for entry in entries])
            _deliver(entries, run(sending))
        except BaseException as error:
            _deliver(entries, [_interrupted(error) for _ in entries])
            raise
        finally:
            self._pass_on()
        answer = own.waiter.result()
        if answer is None:
            raise AssertionError
        return answer

    def _pass_on(self) -> None:
        with self._lock:
            heir = self._waiting.popleft() if self._waiting else None
            self._is_busy = heir is not None
        if heir is not None:
            heir.waiter.set_result(None)


def _interrupted(error: BaseException | None) -> StoreError:
    return StoreUnavailable(f"the enqueue was interrupted; whether the job exists is not known ({error!r})")
