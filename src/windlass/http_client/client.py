"""Both clients of a server: the same nouns and verbs, for blocking code and for asyncio."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from types import TracebackType
from typing import Any, Self, TypeVar, Unpack

import httpx2

from windlass.core.blocking import run
from windlass.core.durations import Duration
from windlass.core.page import MAX_OFFSET, MAX_PAGE
from windlass.http_client import alerts, insights, items, jobs, nouns, records
from windlass.http_client.answers import EVENT_STREAM, Lines
from windlass.http_client.ask import API, Ask, JobRef, as_one, get
from windlass.http_client.courier import Courier
from windlass.http_client.methods import Awaits, Blocks, M, RemoteMethod, RemoteNoun, RemoteStream, verb
from windlass.http_client.transport import AwaitedTransport, BlockingTransport, Transport
from windlass.http_client.waiting import Waiting

T = TypeVar("T")


class RemoteLetters(RemoteNoun[M]):
    """Dead letters, and what operators do with them."""

    page = verb(nouns.letter_page)
    get = verb(nouns.get_letter)
    groups = verb(nouns.group_letters)
    acknowledge = verb(nouns.acknowledge)
    requeue = verb(nouns.requeue)
    acknowledge_many = verb(nouns.acknowledge_many)
    requeue_many = verb(nouns.requeue_many)
    requeue_group = verb(nouns.requeue_group)
    counts = verb(nouns.count_letters)
    edit = verb(nouns.edit_letter)
    add_note = verb(nouns.add_note)

    @RemoteStream
    async def list(self, **wanted: Unpack[nouns.RemoteLetterFilter]) -> AsyncGenerator[records.RemoteDeadLetter, None]:
        """Go through all dead letters that `page` would show, newest death first."""
        cursor: str | None = None
        while True:
            page = await self._transport.send(nouns.letter_page(limit=MAX_PAGE, cursor=cursor, **wanted))
            for one in page.dead_letters:
                yield one
            cursor = page.next
            if cursor is None:
                return


class RemoteCanaries(RemoteNoun[M]):
    """Requeues that try a few letters first."""

    start = verb(nouns.start_canary)
    list = verb(nouns.list_canaries)
    get = verb(nouns.get_canary)
    cancel = verb(nouns.cancel_canary)


class RemoteBreakers(RemoteNoun[M]):
    """Circuit breakers that ever left closed."""

    page = verb(nouns.breaker_page)
    get = verb(nouns.get_breaker)
    history = verb(nouns.breaker_history)
    reset = verb(nouns.reset_breaker)
    force_open = verb(nouns.force_open_breaker)

    @RemoteStream
    async def list(self) -> AsyncGenerator[records.RemoteBreaker, None]:
        """Go through all of them by name."""
        after: str | None = ""
        while after is not None:
            page = await self._transport.send(nouns.breaker_page(after=after, limit=MAX_PAGE))
            for one in page.breakers:
                yield one
            after = page.next


class RemoteLanes(RemoteNoun[M]):
    """Lanes that were paused, declared or have jobs."""

    list = verb(nouns.list_lanes)
    get = verb(nouns.get_lane)
    explain = verb(nouns.explain_lane)
    pause = verb(nouns.pause_lane)
    resume = verb(nouns.resume_lane)
    drain = verb(nouns.drain_lane)


class RemoteTasks(RemoteNoun[M]):
    """Tasks that processes declared; the entries outlive them."""

    page = verb(nouns.task_page)
    get = verb(nouns.get_task)
    explain = verb(nouns.explain_task)
    pause = verb(nouns.pause_task)
    resume = verb(nouns.resume_task)
    drain = verb(nouns.drain_task)

    @RemoteStream
    async def list(self) -> AsyncGenerator[records.RemoteTask, None]:
        """Go through all of them by name."""
        after: str | None = ""
        while after is not None:
            page = await self._transport.send(nouns.task_page(after=after, limit=MAX_PAGE))
            for one in page.tasks:
                yield one
            after = page.next


class RemoteInsights(RemoteNoun[M]):
    """Queue statistics: by task and lane now, and over time."""

    summary = verb(insights.summary)
    series = verb(insights.series)
    scale = verb(insights.scale)


class RemoteAlerts(RemoteNoun[M]):
    """What is wrong, since when, and what helps; silences."""

    board = verb(alerts.board)
    history = verb(alerts.history)
    silence = verb(alerts.silence)
    unsilence = verb(alerts.unsilence)


class RemoteItems(RemoteNoun[M]):
    """What workers have found, each once in its collection."""

    page = verb(items.page)

    @RemoteStream
    async def list(
        self, job: JobRef | None = None, *, collection: str | None = None, after: int = 0
    ) -> AsyncGenerator[records.RemoteItem, None]:
        """Go through all items that a job was the first to find, or a whole collection, in the order they came."""
        at: int | None = after
        while at is not None:
            page = await self._transport.send(items.page(job, collection=collection, after=at, limit=MAX_PAGE))
            for one in page.items:
                yield one
            at = page.next

    @RemoteStream
    async def export(
        self, job: JobRef | None = None, *, collection: str | None = None, kind: items.Format = "jsonl", after: int = 0
    ) -> AsyncGenerator[str, None]:
        """Read the same as text, as it comes; raises ServerUnavailable when it breaks off."""
        whole = items.whole(job, collection=collection, kind=kind, after=after)
        async with aclosing(self._transport.stream(whole, by_line=False)) as texts:
            async for text in texts:
                yield text


class RemoteServer(RemoteNoun[M]):
    """The verbs of jobs, and the nouns beside them."""

    enqueue = verb(jobs.enqueue)
    enqueue_many = verb(jobs.enqueue_many)
    get = verb(jobs.get_job)
    explain = verb(jobs.explain)
    page = verb(jobs.page)
    cancel = verb(jobs.cancel)
    retry = verb(jobs.move("retry"))
    pause = verb(jobs.move("pause"))
    resume = verb(jobs.move("resume"))
    run_now = verb(jobs.move("run_now"))
    stop = verb(jobs.move("stop"))
    enable = verb(jobs.move("enable"))
    disable = verb(jobs.move("disable"))
    delete = verb(jobs.delete)
    stats = verb(jobs.stats)
    queue_stats = verb(jobs.queue_stats)
    metrics = verb(jobs.metrics)
    workers = verb(nouns.list_workers)
    pause_worker = verb(nouns.pause_worker)
    resume_worker = verb(nouns.resume_worker)
    correlation = verb(nouns.correlation)
    counts = verb(nouns.changes_now)
    doctor = verb(nouns.doctor)

    def __init__(self, transport: Transport) -> None:
        """Send everything over `transport`."""
        super().__init__(transport)
        self.letters: RemoteLetters[M] = RemoteLetters(transport)
        self.canaries: RemoteCanaries[M] = RemoteCanaries(transport)
        self.breakers: RemoteBreakers[M] = RemoteBreakers(transport)
        self.lanes: RemoteLanes[M] = RemoteLanes(transport)
        self.tasks: RemoteTasks[M] = RemoteTasks(transport)
        self.insights: RemoteInsights[M] = RemoteInsights(transport)
        self.alerts: RemoteAlerts[M] = RemoteAlerts(transport)
        self.items: RemoteItems[M] = RemoteItems(transport)

    @RemoteStream
    async def list(
        self, *, page_size: int = MAX_PAGE, **wanted: Unpack[jobs.RemoteJobFilter]
    ) -> AsyncGenerator[records.RemoteJob, None]:
        """Go through all jobs of a list, page by page."""
        cursor: str | None = None
        while True:
            page = await self._transport.send(jobs.page(limit=page_size, cursor=cursor, **wanted))
            for one in page.jobs:
                yield one
            cursor = page.next_cursor
            if cursor is None:
                return

    @RemoteStream
    async def executions(self, job: JobRef, *, page_size: int = MAX_PAGE) -> AsyncGenerator[records.RemoteExecution, None]:
        """Go through a job's runs, the one that goes on first, then newest first; some 10,000 at most."""
        size = min(page_size, MAX_PAGE)
        for offset in range(0, MAX_OFFSET + 1, size):
            page = await self._transport.send(jobs.execution_page(job, limit=size, offset=offset))
            for one in page.executions:
                yield one
            if len(page.executions) < size:
                return

    @RemoteMethod
    async def wait(self, job: JobRef, timeout: Duration | None = None) -> Any:  # noqa: ASYNC109 - as the blocking client has it
        """Wait until a job has ended and return its result; raises JobFailed, JobCancelled or WaitTimeout."""
        waiting = Waiting(timeout)
        while not waiting.is_over(found := await self._transport.send(jobs.get_job(job))):
            await self._transport.sleep(waiting.pause_s(found))
        if (last_run := waiting.last_run(found)) is None:
            return waiting.result_of(found)
        runs = await self._transport.send(last_run)
        return waiting.result_of(found, runs)

    @RemoteStream
    async def events(self) -> AsyncGenerator[records.RemoteChange, None]:
        """Go through changes as they happen: at once the present state, then until the server ends the stream."""
        changes = Lines(as_one(records.RemoteChange))
        async with aclosing(self._transport.stream(get(f"{API}/events", str), by_line=True, accept=EVENT_STREAM)) as lines:
            async for line in lines:
                for change in changes.add(line):
                    yield change


class Client(RemoteServer[Blocks], Blocks):
    """A Windlass server from another program; safe to share between threads."""

    def __init__(
        self,
        url: str | Sequence[str] | None = None,
        token: str | None = None,
        *,
        timeout: Duration = 30.0,
        retries: int = 3,
        worker: str | None = None,
        headers: Callable[[], Mapping[str, str]] | None = None,
        transport: httpx2.BaseTransport | None = None,
    ) -> None:
        """Connect at the first call; see `windlass.remote` for the arguments."""
        courier = Courier(url, token, timeout=timeout, retries=retries, worker=worker, more=headers)
        super().__init__(BlockingTransport(courier, transport))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        run(self._transport.close())

    def call(self, ask: Ask[T]) -> T:
        """Send a request and read its answer."""
        return run(self._transport.send(ask))


class AsyncClient(RemoteServer[Awaits], Awaits):
    """A Windlass server from another program; belongs to one event loop."""

    def __init__(
        self,
        url: str | Sequence[str] | None = None,
        token: str | None = None,
        *,
        timeout: Duration = 30.0,
        retries: int = 3,
        worker: str | None = None,
        headers: Callable[[], Mapping[str, str]] | None = None,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        """Connect at the first call; see `windlass.remote` for the arguments."""
        courier = Courier(url, token, timeout=timeout, retries=retries, worker=worker, more=headers)
        super().__init__(AwaitedTransport(courier, transport))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections."""
        await self._transport.close()

    async def call(self, ask: Ask[T]) -> T:
        """Send a request and read its answer."""
        return await self._transport.send(ask)
