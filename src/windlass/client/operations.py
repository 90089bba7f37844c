"""What operators do beyond moving a job: endings by hand, many jobs at once, and the nouns beside jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from windlass.client.client import move, of_store
from windlass.client.job_ref import JobRef, number_of
from windlass.client.scheduler import Scheduler
from windlass.core.blocking import twin_of
from windlass.core.durations import Duration, parse_duration
from windlass.core.filter import own_job
from windlass.core.ids import job_uuid
from windlass.core.job import Job, JobState
from windlass.core.job_verbs import USUAL_BOOST
from windlass.core.late_names import LateNoun
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

    letters: LateNoun[CheckedLetters] = LateNoun("windlass.client.letters:CheckedLetters")
    canaries: LateNoun[Canaries] = LateNoun("windlass.store.letters:Canaries")
    breakers: LateNoun[Breakers] = LateNoun("windlass.store.breakers:Breakers")
    lanes: LateNoun[Lanes] = LateNoun("windlass.store.gates:Lanes")
    # Those of this process are in `tasks`.
    known_tasks: LateNoun[KnownTasks] = LateNoun("windlass.store.gates:KnownTasks")
    schedules: LateNoun[Schedules] = LateNoun("windlass.store.schedules:Schedules")
    chores: LateNoun[Chores] = LateNoun("windlass.store.nouns:Chores")
    workers: LateNoun[Workers] = LateNoun("windlass.store.nouns:Workers")
    insights: LateNoun[Insights] = LateNoun("windlass.store.nouns:Insights")
    alerts: LateNoun[Alerts] = LateNoun("windlass.store.nouns:Alerts")
    items: LateNoun[Items] = LateNoun("windlass.store.nouns:Items")
    reminders: LateNoun[Reminders] = LateNoun("windlass.store.nouns:Reminders")
    sources: LateNoun[Sources] = LateNoun("windlass.store.nouns:Sources")
    pages: LateNoun[Pages] = LateNoun("windlass.store.nouns:Pages")
    feeds: LateNoun[Feeds] = LateNoun("windlass.store.nouns:Feeds")
    stored_settings: LateNoun[StoredSettings] = LateNoun("windlass.store.nouns:StoredSettings")
    runs: LateNoun[Runs] = LateNoun("windlass.store.nouns:Runs")
    tokens: LateNoun[Tokens] = LateNoun("windlass.store.nouns:Tokens")
    audit: LateNoun[Audit] = LateNoun("windlass.store.audit:Audit")

    @property
    def blocking(self) -> Operator:
        """The same verbs as coroutines that never suspend, for `windlass.core.blocking.run`."""
        return self

    async def boost(self, job: JobRef, amount: int = USUAL_BOOST) -> Job:
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

    bulk, bulk_sync = of_store(lambda store: store.bulk)
    bulk_part, bulk_part_sync = of_store(lambda store: store.bulk_part)

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
