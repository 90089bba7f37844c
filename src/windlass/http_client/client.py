"""The client for blocking code."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import wraps
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar, Unpack

import httpx2

from windlass.core.page import MAX_OFFSET, MAX_PAGE
from windlass.http_client import alerts, insights, items, jobs, nouns, records
from windlass.http_client.answers import error_of
from windlass.http_client.ask import API, Ask, Duration, JobRef, as_one
from windlass.http_client.courier import Courier, read_json, unavailable
from windlass.http_client.streams import EVENT_STREAM, Lines
from windlass.http_client.waiting import Waiting

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


class RemoteCaller:
    """Something whose verbs are sent by a client."""

    def call(self, ask: Ask[T]) -> T:
        """Send a request and read its answer."""
        raise NotImplementedError


def verb(describe: Callable[P, Ask[R]]) -> Callable[Concatenate[RemoteCaller, P], R]:
    """Make a method that sends what `describe` describes."""

    @wraps(describe)
    def send(self: RemoteCaller, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.call(describe(*args, **kwargs))

    return send


class RemoteNoun(RemoteCaller):
    """Verbs of one noun."""

    def __init__(self, client: RemoteCaller) -> None:
        """Send requests through `client`."""
        self._client = client

    def call(self, ask: Ask[T]) -> T:
        """Send a request and read its answer."""
        return self._client.call(ask)


class RemoteLetters(RemoteNoun):
    """What died, of what, and what operators do about it."""

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

    def list(self, **wanted: Unpack[nouns.RemoteLetterFilter]) -> Iterator[records.RemoteDeadLetter]:
        """Go through all dead letters that `page` would show, newest death first."""
        cursor: str | None = None
        while True:
            page = self.page(limit=MAX_PAGE, cursor=cursor, **wanted)
            yield from page.dead_letters
            cursor = page.next
            if cursor is None:
                return


class RemoteCanaries(RemoteNoun):
    """Requeues that try a few letters first."""

    start = verb(nouns.start_canary)
    list = verb(nouns.list_canaries)
    get = verb(nouns.get_canary)
    cancel = verb(nouns.cancel_canary)


class RemoteBreakers(RemoteNoun):
    """Circuit breakers that ever left closed."""

    page = verb(nouns.breaker_page)
    get = verb(nouns.get_breaker)
    history = verb(nouns.breaker_history)
    reset = verb(nouns.reset_breaker)
    force_open = verb(nouns.force_open_breaker)

    def list(self) -> Iterator[records.RemoteBreaker]:
        """Go through all of them by name."""
        after: str | None = ""
        while after is not None:
            page = self.page(after=after, limit=MAX_PAGE)
            yield from page.breakers
            after = page.next


class RemoteLanes(RemoteNoun):
    """Lanes that were paused, declared or have jobs."""

    list = verb(nouns.list_lanes)
    get = verb(nouns.get_lane)
    explain = verb(nouns.explain_lane)
    pause = verb(nouns.pause_lane)
    resume = verb(nouns.resume_lane)
    drain = verb(nouns.drain_lane)


class RemoteTasks(RemoteNoun):
    """Tasks that processes declared; the entries outlive them."""

    page = verb(nouns.task_page)
    get = verb(nouns.get_task)
    explain = verb(nouns.explain_task)
    pause = verb(nouns.pause_task)
    resume = verb(nouns.resume_task)
    drain = verb(nouns.drain_task)

    def list(self) -> Iterator[records.RemoteTask]:
        """Go through all of them by name."""
        after: str | None = ""
        while after is not None:
            page = self.page(after=after, limit=MAX_PAGE)
            yield from page.tasks
            after = page.next


class RemoteInsights(RemoteNoun):
    """How the queue fares: by task and lane now, and over time."""

    summary = verb(insights.summary)
    series = verb(insights.series)
    scale = verb(insights.scale)


class RemoteAlerts(RemoteNoun):
    """What is wrong, since when, and what helps; silences."""

    board = verb(alerts.board)
    history = verb(alerts.history)
    silence = verb(alerts.silence)
    unsilence = verb(alerts.unsilence)


class RemoteItems(RemoteNoun):
    """What workers have found, each once in its collection."""

    page = verb(items.page)

    def __init__(self, client: Client) -> None:
        """Send requests through `client`."""
        super().__init__(client)
        self._streams = client

    def list(self, job: JobRef | None = None, *, collection: str | None = None, after: int = 0) -> Iterator[records.RemoteItem]:
        """Go through all items that a job was the first to find, or a whole collection, in the order they came."""
        at: int | None = after
        while at is not None:
            page = self.page(job, collection=collection, after=at, limit=MAX_PAGE)
            yield from page.items
            at = page.next

    def export(
        self, job: JobRef | None = None, *, collection: str | None = None, kind: items.Format = "jsonl", after: int = 0
    ) -> Iterator[str]:
        """Read the same as text, as it comes; raises ServerUnavailable when it breaks off."""
        return self._streams.read(items.whole(job, collection=collection, kind=kind, after=after))


class Client(RemoteCaller):
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
        self._courier = Courier(url, token, timeout=timeout, retries=retries, worker=worker, more=headers)
        self._http = httpx2.Client(headers=self._courier.headers, timeout=self._courier.timeout, transport=transport)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def call(self, ask: Ask[T]) -> T:
        """Send a request and read its answer."""
        tries = 0
        while True:
            try:
                response = self._http.request(**self._courier.request(ask))
            except httpx2.TransportError as error:
                tries += 1
                time.sleep(self._courier.pause_s(ask, error, tries))
            else:
                return self._courier.read(ask, response)

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

    @property
    def letters(self) -> RemoteLetters:
        """The dead letters."""
        return RemoteLetters(self)

    @property
    def canaries(self) -> RemoteCanaries:
        """Requeues of dead letters that try a few first."""
        return RemoteCanaries(self)

    @property
    def breakers(self) -> RemoteBreakers:
        """The circuit breakers."""
        return RemoteBreakers(self)

    @property
    def lanes(self) -> RemoteLanes:
        """Lanes: pause, resume, drain."""
        return RemoteLanes(self)

    @property
    def tasks(self) -> RemoteTasks:
        """Tasks: pause, resume, drain."""
        return RemoteTasks(self)

    @property
    def insights(self) -> RemoteInsights:
        """How the queue fares."""
        return RemoteInsights(self)

    @property
    def alerts(self) -> RemoteAlerts:
        """What is wrong."""
        return RemoteAlerts(self)

    @property
    def items(self) -> RemoteItems:
        """What workers have found."""
        return RemoteItems(self)

    def list(self, *, page_size: int = MAX_PAGE, **wanted: Unpack[jobs.RemoteJobFilter]) -> Iterator[records.RemoteJob]:
        """Go through all jobs of a list, page by page."""
        cursor: str | None = None
        while True:
            page = self.page(limit=page_size, cursor=cursor, **wanted)
            yield from page.jobs
            cursor = page.next_cursor
            if cursor is None:
                return

    def executions(self, job: JobRef, *, page_size: int = MAX_PAGE) -> Iterator[records.RemoteExecution]:
        """Go through a job's runs, the one that goes on first, then newest first; some 10,000 at most."""
        size = min(page_size, MAX_PAGE)
        for offset in range(0, MAX_OFFSET + 1, size):
            found = self.call(jobs.execution_page(job, limit=size, offset=offset)).executions
            yield from found
            if len(found) < size:
                return

    def wait(self, job: JobRef, timeout: Duration | None = None) -> Any:
        """Wait until a job has ended and return its result; raises JobFailed, JobCancelled or WaitTimeout."""
        waiting = Waiting(timeout)
        while not waiting.is_over(found := self.get(job)):
            time.sleep(waiting.pause_s(found))
        if (last_run := waiting.last_run(found)) is not None:
            return waiting.result_of(found, self.call(last_run))
        return waiting.result_of(found)

    def events(self) -> Iterator[records.RemoteChange]:
        """Be told what changes, as it changes: at once how things are, then until the server ends the stream."""
        url, silence = self._courier.url(f"{API}/events"), Lines.timeout(self._courier.timeout)
        try:
            with self._http.stream("GET", url, headers={"accept": EVENT_STREAM}, timeout=silence) as response:
                if not response.is_success:
                    response.read()
                    raise error_of(response.status_code, read_json(response), response.headers)
                lines = Lines(as_one(records.RemoteChange))
                for line in response.iter_lines():
                    yield from lines.add(line)
        except httpx2.TransportError as error:
            raise unavailable(error, "events") from error

    def read(self, ask: Ask[str]) -> Iterator[str]:
        """Read an answer as it comes; raises ServerUnavailable when it breaks off."""
        request = self._courier.request(ask)
        try:
            with self._http.stream(**request, timeout=Lines.timeout(self._courier.timeout)) as response:
                if not response.is_success:
                    response.read()
                    raise error_of(response.status_code, read_json(response), response.headers)
                yield from response.iter_text()
        except httpx2.TransportError as error:
            raise unavailable(error, f"{ask.method} {ask.path}") from error
