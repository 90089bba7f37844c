"""What operators do beyond moving a job: endings by hand, many jobs at once, and the nouns beside jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from windlass.client import facets
from windlass.client.blocking import twin_of
from windlass.client.options import Duration
from windlass.client.refs import JobRef, number_of
from windlass.client.scheduler import Scheduler
from windlass.core.bulk import Bulk
from windlass.core.durations import parse_duration
from windlass.core.filter import JobFilter
from windlass.core.job import Job, JobState


class Operator(Scheduler):
    """A client with an operator's verbs."""

    @property
    def blocking(self) -> Operator:
        """The same verbs as coroutines that never suspend, for `windlass.core.blocking.run`."""
        return self

    @property
    def letters(self) -> facets.Letters:
        """The dead letters."""
        return facets.Letters(self)

    @property
    def breakers(self) -> facets.Breakers:
        """The circuit breakers."""
        return facets.Breakers(self)

    @property
    def lanes(self) -> facets.Lanes:
        """Lanes: pause, resume, drain."""
        return facets.Lanes(self)

    @property
    def known_tasks(self) -> facets.KnownTasks:
        """The tasks of the fleet: pause, resume, drain. Those of this process are in `tasks`."""
        return facets.KnownTasks(self)

    @property
    def schedules(self) -> facets.Schedules:
        """Recurring jobs by their name; `recurring`, `ensure` and `sync_enabled` make and switch them."""
        return facets.Schedules(self)

    @property
    def chores(self) -> facets.Chores:
        """The upkeep: pause, resume."""
        return facets.Chores(self)

    @property
    def workers(self) -> facets.Workers:
        """The processes that run jobs."""
        return facets.Workers(self)

    @property
    def items(self) -> facets.Items:
        """What workers have found."""
        return facets.Items(self)

    @property
    def reminders(self) -> facets.Reminders:
        """Mails that wait for their time."""
        return facets.Reminders(self)

    @property
    def sources(self) -> facets.Sources:
        """What `crawl` crawls."""
        return facets.Sources(self)

    @property
    def pages(self) -> facets.Pages:
        """What crawls have found."""
        return facets.Pages(self)

    @property
    def feeds(self) -> facets.Feeds:
        """Feeds and who subscribes to them."""
        return facets.Feeds(self)

    @property
    def stored_settings(self) -> facets.StoredSettings:
        """What operators have set in the database."""
        return facets.StoredSettings(self)

    @property
    def runs(self) -> facets.Runs:
        """How runs went."""
        return facets.Runs(self)

    @property
    def audit(self) -> facets.Audit:
        """Who did what."""
        return facets.Audit(self)

    async def boost(self, job: JobRef, amount: int = 10) -> Job:
        """Raise the priority of a job that is not over, up to 100."""
        return (await (await self.store()).boost([number_of(job)], amount)).one()

    boost_sync = twin_of(boost)

    async def set_priority(self, job: JobRef, priority: int) -> Job:
        """Give a job that is not over a new priority, which is also the one it returns to."""
        return (await (await self.store()).set_priority([number_of(job)], priority)).one()

    set_priority_sync = twin_of(set_priority)

    async def clone(self, job: JobRef, created_by: str | None = None) -> Job:
        """Make a new job from a finished one."""
        return (await (await self.store()).clone([number_of(job)], created_by)).one()

    clone_sync = twin_of(clone)

    async def delete(self, job: JobRef) -> Job:
        """Remove a job that nobody holds; the answer is the job as it was."""
        return (await (await self.store()).delete([number_of(job)])).one()

    delete_sync = twin_of(delete)

    async def bury(self, job: JobRef, error: str) -> Job:
        """Fail a waiting job for good, with a dead letter."""
        return (await (await self.store()).bury([number_of(job)], error)).one()

    bury_sync = twin_of(bury)

    async def fail(self, job: JobRef, error: str, *, will_retry: bool = True) -> Job:
        """End a run as failed, by its retry policy or for good; a due job waits for its retry, one that is not due cannot."""
        return (await (await self.store()).fail([number_of(job)], error, will_retry=will_retry)).one()

    fail_sync = twin_of(fail)

    async def take_lease(self, job: JobRef) -> Job:
        """End a job's lease as if nobody had renewed it."""
        return (await (await self.store()).take_lease([number_of(job)])).one()

    take_lease_sync = twin_of(take_lease)

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
    ) -> Bulk:
        """Do what a verb of the store does, by name and with its options, to every job a filter matches, or to those of `ids`."""
        return await (await self.store()).bulk(verb, wanted, options, ids=ids, dry_run=dry_run, batch=batch)

    bulk_sync = twin_of(bulk)

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
