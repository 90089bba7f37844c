"""The nouns beside jobs: each verb of the store's ports for asyncio, and its twin for code without an event loop."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Coroutine
from difflib import get_close_matches
from functools import wraps
from typing import TYPE_CHECKING, Any, ClassVar, Concatenate, ParamSpec, Protocol, Self, TypeVar

from windlass import ports
from windlass.client.blocking import twin_of
from windlass.client.options import Duration
from windlass.core.breaker import Breaker
from windlass.core.chore import CHORES
from windlass.core.durations import parse_duration
from windlass.core.feed import FETCH_TASK
from windlass.core.filter import JobFilter
from windlass.core.gate import ALL_LANES, BUILT_IN_LANES, GateKind
from windlass.core.page import MAX_PAGE, JobQuery
from windlass.errors import ChoreNotFound, GateNotFound, JobNotFound, ScheduleNotFound

if TYPE_CHECKING:
    from windlass.core.feed import Feed
    from windlass.core.job import Job

log = logging.getLogger("windlass.client.feeds")

NOT_FETCHED = "no worker has the pack feeds now; start one with `windlass worker --packs feeds`"
"""Why a feed that somebody subscribes to may not be fetched."""

P = ParamSpec("P")
R = TypeVar("R")
Verb = Callable[Concatenate["Facet", P], Coroutine[Any, Any, R]]
Twin = Callable[Concatenate["Facet", P], R]


class Owner(Protocol):
    """The client whose facet this is."""

    @property
    def blocking(self) -> Owner:
        """The client whose coroutines never suspend."""
        ...

    async def store(self) -> ports.Store:
        """Give the store below."""
        ...

    async def driver(self, connection: Any) -> Any:
        """Find the driver's own connection inside what a caller holds; None stays None."""
        ...


class Facet:
    """Verbs of one noun; the database is opened when the first is used."""

    noun: ClassVar[str]
    """What the store calls it."""

    def __init__(self, client: Owner) -> None:
        """Speak to the client's store."""
        self._client = client

    @property
    def blocking(self) -> Self:
        """The same verbs as coroutines that never suspend."""
        return type(self)(self._client.blocking)

    async def port(self) -> Any:
        """Give the store's own side of it."""
        return getattr(await self._client.store(), self.noun)


def verbs(port: Callable[Concatenate[Any, P], Coroutine[Any, Any, R]]) -> tuple[Verb[P, R], Twin[P, R]]:
    """Make a verb that passes on to the port's verb of the same name, and its twin."""

    @wraps(port)
    async def call(self: Facet, /, *args: P.args, **kwargs: P.kwargs) -> R:
        answer: R = await getattr(await self.port(), port.__name__)(*args, **kwargs)
        return answer

    return call, twin_of(call)


class Letters(Facet):
    """What died, of what, and what operators do about it."""

    noun = "letters"
    list, list_sync = verbs(ports.Letters.list)
    get, get_sync = verbs(ports.Letters.get)
    groups, groups_sync = verbs(ports.Letters.groups)
    count_open, count_open_sync = verbs(ports.Letters.count_open)
    acknowledge, acknowledge_sync = verbs(ports.Letters.acknowledge)
    acknowledge_all, acknowledge_all_sync = verbs(ports.Letters.acknowledge_all)
    requeue, requeue_sync = verbs(ports.Letters.requeue)
    requeue_all, requeue_all_sync = verbs(ports.Letters.requeue_all)


class Breakers(Facet):
    """Circuit breakers that ever left closed; `app.breaker(name)` guards a block with one."""

    noun = "breakers"
    list, list_sync = verbs(ports.Breakers.list)
    get, get_sync = verbs(ports.Breakers.get)
    count, count_sync = verbs(ports.Breakers.count)
    history, history_sync = verbs(ports.Breakers.history)
    admit, admit_sync = verbs(ports.Breakers.admit)
    record, record_sync = verbs(ports.Breakers.record)
    count_failures, count_failures_sync = verbs(ports.Breakers.count_failures)
    reset, reset_sync = verbs(ports.Breakers.reset)

    async def force_open(self, name: str, for_: Duration | None = None) -> Breaker:
        """Open a breaker, whoever is trying it: for a while, or until it is reset."""
        wait = None if for_ is None else parse_duration(for_, field="for")
        opened: Breaker = await (await self.port()).force_open(name, wait)
        return opened

    force_open_sync = twin_of(force_open)


class Gates(Facet):
    """What lanes and tasks have in common; they may be paused before anything has declared them."""

    kind: ClassVar[GateKind]

    async def names(self) -> set[str]:
        """List the names that were declared, paused or have jobs."""
        raise NotImplementedError

    async def ensure_known(self, name: str, *, may_force: bool = True) -> None:
        """Refuse a name that was never declared or paused and has no jobs; raises GateNotFound with the nearest names.

        The message mentions `force`, unless the caller has no such option.
        """
        self.kind.check(name)
        known = await self.names()
        if name not in known:
            raise GateNotFound(self.kind.value, name, get_close_matches(name, sorted(known)), may_force=may_force)

    ensure_known_sync = twin_of(ensure_known)


class Lanes(Gates):
    """Lanes that were paused, declared or have jobs; the name `*` pauses and resumes every lane."""

    noun = "lanes"
    kind = GateKind.LANE
    list, list_sync = verbs(ports.Lanes.list)
    pause, pause_sync = verbs(ports.Lanes.pause)
    resume, resume_sync = verbs(ports.Lanes.resume)
    drain, drain_sync = verbs(ports.Lanes.drain)
    running_in, running_in_sync = verbs(ports.Lanes.running_in)

    async def names(self) -> set[str]:
        """List the lanes that were declared, paused or have jobs, those every fleet has, and `*`."""
        return {lane.name for lane in await (await self.port()).list()} | BUILT_IN_LANES | {ALL_LANES}


class KnownTasks(Gates):
    """Tasks that processes declared; the entries outlive them."""

    noun = "tasks"
    kind = GateKind.TASK
    list, list_sync = verbs(ports.Tasks.list)
    get, get_sync = verbs(ports.Tasks.get)
    knows, knows_sync = verbs(ports.Tasks.knows)
    pause, pause_sync = verbs(ports.Tasks.pause)
    resume, resume_sync = verbs(ports.Tasks.resume)
    drain, drain_sync = verbs(ports.Tasks.drain)
    running_in, running_in_sync = verbs(ports.Tasks.running_in)

    async def names(self) -> set[str]:
        """List the tasks that were declared, paused or have jobs."""
        store = await self._client.store()
        found = {count.task for count in await store.count_jobs() if count.jobs}
        after = ""
        while page := await store.tasks.list(after=after):
            found.update(task.name for task in page)
            after = page[-1].name
        return found


class Schedules(Facet):
    """Recurring jobs by their name."""

    noun = "schedules"
    create, create_sync = verbs(ports.Schedules.create)
    change, change_sync = verbs(ports.Schedules.change)
    enable, enable_sync = verbs(ports.Schedules.enable)
    disable, disable_sync = verbs(ports.Schedules.disable)
    prune_declared, prune_declared_sync = verbs(ports.Schedules.prune_declared)

    async def get(self, name: str) -> Job:
        """Read a schedule; raises ScheduleNotFound, a JobNotFound, with the nearest name."""
        try:
            found: Job = await (await self.port()).get(name)
        except JobNotFound:
            raise ScheduleNotFound(name, await self._names()) from None
        return found

    get_sync = twin_of(get)

    async def _names(self) -> list[str]:
        """List the names of the newest recurring jobs."""
        query = JobQuery(filter=JobFilter(is_recurring=True), limit=MAX_PAGE)
        return [job.name for job in (await (await self._client.store()).list_jobs(query)).jobs if job.name is not None]


class Chores(Facet):
    """The upkeep that one process of many does for each interval."""

    noun = "chores"
    list, list_sync = verbs(ports.Chores.list)

    async def pause(self, name: str) -> bool:
        """Let no process do a chore; returns whether that changed anything. Raises ChoreNotFound."""
        await self._check(name)
        is_changed: bool = await (await self.port()).pause(name)
        return is_changed

    pause_sync = twin_of(pause)

    async def resume(self, name: str) -> bool:
        """Undo `pause`; an overdue chore is due at once. Raises ChoreNotFound."""
        await self._check(name)
        is_changed: bool = await (await self.port()).resume(name)
        return is_changed

    resume_sync = twin_of(resume)

    async def _check(self, name: str) -> None:
        # Processes of another version may have chores that this one does not know.
        known = CHORES | {chore.name for chore in await self.list()} if name not in CHORES else CHORES
        if name not in known:
            raise ChoreNotFound(name, known)


class Workers(Facet):
    """Processes that run jobs."""

    noun = "workers"
    list, list_sync = verbs(ports.Workers.list)


class Items(Facet):
    """What workers have found, each once in its collection."""

    noun = "items"
    list, list_sync = verbs(ports.Items.list)
    count, count_sync = verbs(ports.Items.count)


class Sources(Facet):
    """What `crawl` crawls, by id."""

    noun = "sources"
    list, list_sync = verbs(ports.Sources.list)
    get, get_sync = verbs(ports.Sources.get)
    upsert, upsert_sync = verbs(ports.Sources.upsert)
    delete, delete_sync = verbs(ports.Sources.delete)
    stale, stale_sync = verbs(ports.Sources.stale)


class Reminders(Facet):
    """Mails that are to be sent once a time has come."""

    noun = "reminders"
    add, add_sync = verbs(ports.Reminders.add)
    get, get_sync = verbs(ports.Reminders.get)
    list, list_sync = verbs(ports.Reminders.list)
    count, count_sync = verbs(ports.Reminders.count)
    delete, delete_sync = verbs(ports.Reminders.delete)


class Pages(Facet):
    """What crawls have found."""

    noun = "pages"
    list, list_sync = verbs(ports.Pages.list)
    search, search_sync = verbs(ports.Pages.search)
    get, get_sync = verbs(ports.Pages.get)
    count, count_sync = verbs(ports.Pages.count)
    delete, delete_sync = verbs(ports.Pages.delete)


class Feeds(Facet):
    """Feeds, who subscribes to them, and what was found in them. With a `connection`, a verb belongs to its transaction."""

    noun = "feeds"
    list, list_sync = verbs(ports.Feeds.list)
    get, get_sync = verbs(ports.Feeds.get)
    find, find_sync = verbs(ports.Feeds.find)
    entries, entries_sync = verbs(ports.Feeds.entries)

    async def subscribe(self, url: str, subscriber: str, connection: Any = None) -> Feed:
        """Subscribe to a feed: its one job is made, or goes on at its next time. Log a warning when no worker would run it."""
        feed: Feed = await (await self.port()).subscribe(url, subscriber, await self._client.driver(connection))
        if not await self.are_fetched():
            log.warning("feed %d, %s: %s", feed.id, feed.url, NOT_FETCHED)
        return feed

    subscribe_sync = twin_of(subscribe)

    async def unsubscribe(self, feed: int, subscriber: str, connection: Any = None) -> Feed:
        """End a subscription, if there is one; the last to leave disables the job. Raises FeedNotFound."""
        left: Feed = await (await self.port()).unsubscribe(feed, subscriber, await self._client.driver(connection))
        return left

    unsubscribe_sync = twin_of(unsubscribe)

    async def are_fetched(self) -> bool:
        """Whether a worker that runs now has the task that fetches feeds."""
        workers = await (await self._client.store()).workers.list()
        return any(worker.is_online and FETCH_TASK in json.loads(worker.tasks) for worker in workers)

    are_fetched_sync = twin_of(are_fetched)


class StoredSettings(Facet):
    """What operators have set; it holds from the next use on, in every process."""

    noun = "settings"
    all, all_sync = verbs(ports.Settings.all)
    set, set_sync = verbs(ports.Settings.set)
    unset, unset_sync = verbs(ports.Settings.unset)
    effective, effective_sync = verbs(ports.Settings.effective)


class Runs(Facet):
    """Totals that survive pruning, minutes with percentiles, and statistics made of both."""

    noun = "runs"
    totals, totals_sync = verbs(ports.Runs.totals)
    minutes, minutes_sync = verbs(ports.Runs.minutes)
    metrics, metrics_sync = verbs(ports.Runs.metrics)
    priorities, priorities_sync = verbs(ports.Runs.priorities)
    job, job_sync = verbs(ports.Runs.job)


class Audit(Facet):
    """Who did what; lines are added and never changed."""

    noun = "audit"
    list, list_sync = verbs(ports.Audit.list)
    verify, verify_sync = verbs(ports.Audit.verify)
