"""What operators do beyond moving a job: endings by hand, many jobs at once, and the nouns beside jobs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from windlass.client.client import move
from windlass.client.job_ref import JobRef, number_of
from windlass.client.scheduler import Scheduler
from windlass.core.blocking import twin_of
from windlass.core.durations import Duration, parse_duration
from windlass.core.filter import JobFilter, own_job
from windlass.core.ids import job_uuid
from windlass.core.job import Job, JobState
from windlass.core.job_verbs import Bulk, BulkPart
from windlass.core.payload import encode_object
from windlass.core.related import MOST_RELATED

if TYPE_CHECKING:
    from windlass.client.letters import CheckedLetters
    from windlass.core.related import Trace
    from windlass.store.audit import Audit
    from windlass.store.breakers import Breakers
    from windlass.store.gates import KnownTasks, Lanes
    from windlass.store.letters import Canaries
    from windlass.store.nouns import (
        Alerts,
        Chores,
        Feeds,
        Insights,
        Items,
        Pages,
        Reminders,
        Runs,
        Sources,
        StoredSettings,
        Tokens,
        Workers,
    )
    from windlass.store.schedules import Schedules


class Operator(Scheduler):
    """A client with an operator's verbs."""

    @property
    def blocking(self) -> Operator:
        """The same verbs as coroutines that never suspend, for `windlass.core.blocking.run`."""
        return self

    @property
    def letters(self) -> CheckedLetters:
        """The dead letters."""
        from windlass.client.letters import CheckedLetters

        return CheckedLetters(self)

    @property
    def canaries(self) -> Canaries:
        """Requeues that try a few letters first."""
        from windlass.store.letters import Canaries

        return Canaries(self)

    @property
    def breakers(self) -> Breakers:
        """The circuit breakers."""
        from windlass.store.breakers import Breakers

        return Breakers(self)

    @property
    def lanes(self) -> Lanes:
        """Lanes: pause, resume, drain."""
        from windlass.store.gates import Lanes

        return Lanes(self)

    @property
    def known_tasks(self) -> KnownTasks:
        """The tasks of the fleet: pause, resume, drain. Those of this process are in `tasks`."""
        from windlass.store.gates import KnownTasks

        return KnownTasks(self)

    @property
    def schedules(self) -> Schedules:
        """Recurring jobs by their name; `recurring`, `ensure` and `sync_enabled` make and switch them."""
        from windlass.store.schedules import Schedules

        return Schedules(self)

    @property
    def chores(self) -> Chores:
        """The upkeep: pause, resume."""
        from windlass.store.nouns import Chores

        return Chores(self)

    @property
    def workers(self) -> Workers:
        """The processes that run jobs."""
        from windlass.store.nouns import Workers

        return Workers(self)

    @property
    def insights(self) -> Insights:
        """Queue statistics: by task and lane now, and over time."""
        from windlass.store.nouns import Insights

        return Insights(self)

    @property
    def alerts(self) -> Alerts:
        """What is wrong, since when, and what helps; silences."""
        from windlass.store.nouns import Alerts

        return Alerts(self)

    @property
    def items(self) -> Items:
        """What workers have found."""
        from windlass.store.nouns import Items

        return Items(self)

    @property
    def reminders(self) -> Reminders:
        """Mails that wait for their time."""
        from windlass.store.nouns import Reminders

        return Reminders(self)

    @property
    def sources(self) -> Sources:
        """What `crawl` crawls."""
        from windlass.store.nouns import Sources

        return Sources(self)

    @property
    def pages(self) -> Pages:
        """What crawls have found."""
        from windlass.store.nouns import Pages

        return Pages(self)

    @property
    def feeds(self) -> Feeds:
        """Feeds and their subscribers."""
        from windlass.store.nouns import Feeds

        return Feeds(self)

    @property
    def stored_settings(self) -> StoredSettings:
        """What operators have set in the database."""
        from windlass.store.nouns import StoredSettings

        return StoredSettings(self)

    @property
    def runs(self) -> Runs:
        """How runs went."""
        from windlass.store.nouns import Runs

        return Runs(self)

    @property
    def tokens(self) -> Tokens:
        """What workers, scripts and people show to be let in."""
        from windlass.store.nouns import Tokens

        return Tokens(self)

    @property
    def audit(self) -> Audit:
        """The audit log."""
        from windlass.store.audit import Audit

        return Audit(self)

    async def boost(self, job: JobRef, amount: int = 10) -> Job:
        """Raise the priority of a job that is not over, up to 100."""
        return (await (await self.store()).boost([number_of(job)], amount)).one()

    boost_sync = twin_of(boost)

    async def set_priority(self, job: JobRef, priority: int) -> Job:
        """Set the priority of a job that is not over; it also returns to this one."""
        return (await (await self.store()).set_priority([number_of(job)], priority)).one()

    set_priority_sync = twin_of(set_priority)

    async def clone(self, job: JobRef, created_by: str | None = None, payload: Mapping[str, Any] | None = None) -> Job:
        """Make a new job from a finished one, with its payload or with another; raises InvalidPayload."""
        number = number_of(job)
        if payload is not None:
            await self.check_payload((await self.get(number)).task, payload)
        text = None if payload is None else encode_object(payload)
        return (await (await self.store()).clone([number], created_by, text)).one()

    clone_sync = twin_of(clone)

    delete, delete_sync = move("delete")

    async def bury(self, job: JobRef, error: str) -> Job:
        """Fail a waiting job for good, with a dead letter."""
        return (await (await self.store()).bury([number_of(job)], error)).one()

    bury_sync = twin_of(bury)

    async def fail(self, job: JobRef, error: str, *, will_retry: bool = True) -> Job:
        """End a run as failed, by its retry policy or for good; a due job waits for its retry, one that is not due cannot."""
        return (await (await self.store()).fail([number_of(job)], error, will_retry=will_retry)).one()

    fail_sync = twin_of(fail)

    take_lease, take_lease_sync = move("take_lease")

    async def override_status(self, job: JobRef, status: JobState, *, by: str, lease: Duration = "15m") -> Job:
        """Put a job into a state by hand, round the table of moves; `running` gives `by` a lease of this length."""
        length = parse_duration(lease, field="lease")
        return (await (await self.store()).override_status([number_of(job)], status, by=by, lease_length=length)).one()

    override_status_sync = twin_of(override_status)

    async def bulk(
        self,
        verb: str,
        wanted: JobFilter,
        options: Mapping[str, Any] | None = None,
        *,
        ids: Sequence[int] | None = None,
        dry_run: bool = False,
        batch: int = 500,
        on_batch: Callable[[Bulk], object] | None = None,
    ) -> Bulk:
        """Do what a verb of the store does, by name and with its options, to every job a filter matches, or to those of `ids`."""
        return await (await self.store()).bulk(verb, wanted, options, ids=ids, dry_run=dry_run, batch=batch, on_batch=on_batch)

    bulk_sync = twin_of(bulk)

    async def bulk_part(
        self,
        verb: str,
        wanted: JobFilter,
        options: Mapping[str, Any] | None = None,
        *,
        ids: Sequence[int] | None = None,
        after: int = 0,
        until: int | None = None,
        limit: int,
    ) -> BulkPart:
        """Do what `bulk` does to at most `limit` jobs with a number above `after`; the answer has where to go on."""
        return await (await self.store()).bulk_part(verb, wanted, options, ids=ids, after=after, until=until, limit=limit)

    bulk_part_sync = twin_of(bulk_part)

    async def trace(self, correlation_id: str, *, after: int = 0, limit: int = MOST_RELATED) -> Trace:
        """Read the jobs of one correlation id as a tree with their times, at most 500; the next come with `after`.

        The number or UUID of a job means the correlation of that job. Raises JobNotFound.
        """
        store = await self.store()
        own = own_job(correlation_id)
        named = [] if own is None else await store.get_many([own])
        meant = named[0].correlation_id or correlation_id if named else correlation_id
        found = await store.trace(meant, after=after, limit=limit)
        if found.spans or (after and not correlation_id.isdecimal()):
            return found
        job = await self.get(correlation_id)
        return await store.trace(job.correlation_id or str(job_uuid(job.id)), after=after, limit=limit)

    trace_sync = twin_of(trace)

    async def jobs_by_correlation(self, correlation_id: str) -> Sequence[Job]:
        """Read every job with this correlation id, oldest first; a job's own UUID finds it and its children."""
        store = await self.store()
        found = await store.list_by_correlation(correlation_id)
        jobs = list(found.jobs)
        while not found.is_complete:
            found = await store.list_by_correlation(correlation_id, after=jobs[-1].id)
            jobs += found.jobs
        return jobs

    jobs_by_correlation_sync = twin_of(jobs_by_correlation)
