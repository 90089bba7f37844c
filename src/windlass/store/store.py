"""Every verb over one database; what takes more than one transaction is written out here."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from windlass.core.audit import Actor
from windlass.core.blocking import twin_of
from windlass.core.chore import Swept
from windlass.core.contact import Contact
from windlass.core.filter import JobFilter
from windlass.core.job import Claimed, Enqueued, Held, JobState, Lease, NewJob, Promoted, Slices
from windlass.core.job_verbs import Bulk, BulkPart
from windlass.core.late_names import LateNoun
from windlass.core.outcome import NO_RUN, Ending, Finish, Released, Run, decide
from windlass.core.pull import PickOrder, Pull
from windlass.core.report import extension
from windlass.errors import LeaseLost, RowsLocked, StoreError, StoreRefused
from windlass.ports import Clock
from windlass.store import batches
from windlass.store.aging import age, age_some
from windlass.store.bulk_walk import MOST_OF_A_PART, run_bulk, run_part
from windlass.store.calls import (
    aging,
    breakers,
    reads,
    recurrence,
    schema,
    templates,
    work,
)
from windlass.store.calls import pull as pulls_of
from windlass.store.calls import report as reports
from windlass.store.calls.call import Call, Means
from windlass.store.database import Bounded, Database
from windlass.store.noun import verb
from windlass.store.stored_jobs import StoredJobs
from windlass.store.wakeups import SqlWakeups

if TYPE_CHECKING:
    from windlass.core.explanation import Explanation
    from windlass.store.audit import Audit
    from windlass.store.breakers import Breakers
    from windlass.store.cron_migration import CronMigration
    from windlass.store.gates import KnownTasks, Lanes
    from windlass.store.letters import Canaries, Letters
    from windlass.store.nouns import (
        Alerts,
        Chores,
        Crawls,
        Feeds,
        Insights,
        Items,
        Pages,
        Reminders,
        Runs,
        Samples,
        Sessions,
        Signatures,
        Sources,
        StoredSettings,
        Tokens,
        Workers,
    )
    from windlass.store.retention import Pruning
    from windlass.store.schedules import Schedules

T = TypeVar("T")

log = logging.getLogger("windlass.store")

# Each costs the moment that a statement waits for a row: a report never takes longer than these together.
_MOST_WAITS = 8


class _Late:
    """What a finish has left out because others hold it, and how often it had to wait to learn that."""

    def __init__(self) -> None:
        self.ids: list[int] = []
        self.waits = 0


def _halves(batch: Sequence[Ending]) -> list[Sequence[Ending]]:
    middle = len(batch) // 2
    return [batch[:middle], batch[middle:]]


class Store(StoredJobs):
    """Every verb of the engine, over one database."""

    slices, slices_sync = verb(work.slices)
    enqueue, enqueue_sync = verb(work.enqueue)
    enqueue_and_get, enqueue_and_get_sync = verb(work.enqueue_and_get)
    claim_suspects, claim_suspects_sync = verb(work.claim_suspects)
    claim_probe, claim_probe_sync = verb(breakers.claim_probe)
    pull, pull_sync = verb(reports.pull)
    report, report_sync = verb(reports.report)
    lapsed, lapsed_sync = verb(work.lapsed)
    prune_logs, prune_logs_sync = verb(work.prune_logs)
    fold_counts, fold_counts_sync = verb(reads.fold_counts)

    alerts: LateNoun[Alerts] = LateNoun("windlass.store.nouns:Alerts")
    audit: LateNoun[Audit] = LateNoun("windlass.store.audit:Audit")
    breakers: LateNoun[Breakers] = LateNoun("windlass.store.breakers:Breakers")
    chores: LateNoun[Chores] = LateNoun("windlass.store.nouns:Chores")
    crawls: LateNoun[Crawls] = LateNoun("windlass.store.nouns:Crawls")
    cron_migration: LateNoun[CronMigration] = LateNoun("windlass.store.cron_migration:CronMigration")
    feeds: LateNoun[Feeds] = LateNoun("windlass.store.nouns:Feeds")
    insights: LateNoun[Insights] = LateNoun("windlass.store.nouns:Insights")
    items: LateNoun[Items] = LateNoun("windlass.store.nouns:Items")
    lanes: LateNoun[Lanes] = LateNoun("windlass.store.gates:Lanes")
    canaries: LateNoun[Canaries] = LateNoun("windlass.store.letters:Canaries")
    letters: LateNoun[Letters] = LateNoun("windlass.store.letters:Letters")
    pages: LateNoun[Pages] = LateNoun("windlass.store.nouns:Pages")
    reminders: LateNoun[Reminders] = LateNoun("windlass.store.nouns:Reminders")
    retention: LateNoun[Pruning] = LateNoun("windlass.store.retention:Pruning")
    runs: LateNoun[Runs] = LateNoun("windlass.store.nouns:Runs")
    schedules: LateNoun[Schedules] = LateNoun("windlass.store.schedules:Schedules")
    samples: LateNoun[Samples] = LateNoun("windlass.store.nouns:Samples")
    sessions: LateNoun[Sessions] = LateNoun("windlass.store.nouns:Sessions")
    settings: LateNoun[StoredSettings] = LateNoun("windlass.store.nouns:StoredSettings")
    signatures: LateNoun[Signatures] = LateNoun("windlass.store.nouns:Signatures")
    sources: LateNoun[Sources] = LateNoun("windlass.store.nouns:Sources")
    tasks: LateNoun[KnownTasks] = LateNoun("windlass.store.gates:KnownTasks")
    tokens: LateNoun[Tokens] = LateNoun("windlass.store.nouns:Tokens")
    workers: LateNoun[Workers] = LateNoun("windlass.store.nouns:Workers")

    def __init__(self, database: Database, means: Means) -> None:
        """Run calls on `database` with these means."""
        super().__init__(self)
        self.database = database
        self.means = means

    @property
    def blocking(self) -> Store:
        """The store itself; verbs for code without an event loop need one whose database blocks."""
        return self

    def acting(self, actor: Actor) -> Store:
        """Return the same store with its operator verbs audited, each in the transaction of what it does."""
        return Store(self.database, self.means._replace(actor=actor))

    def bounded(self, timeout: timedelta) -> Store:
        """Return the same store whose reads raise StoreBusy when they take longer."""
        return self.over(Bounded(self.database, timeout))

    def over(self, database: Database) -> Store:
        """Return the same store over another adapter."""
        return Store(database, self.means)

    def at(self, clock: Clock) -> Store:
        """Return the same store on a test's time."""
        return Store(self.database, self.means._replace(clock=clock))

    async def run(self, call: Call[T], connection: Any = None) -> T:
        """Run a call in a transaction of its own, or inside the caller's on `connection`."""
        if call.known:
            return call.known[0]
        given = call.given(self.means)
        return await (self.database.run(given) if connection is None else self.database.run_within(connection, given))

    @cached_property
    def wakeups(self) -> SqlWakeups:
        """Hints that it is worth looking before the next poll; none come until it is entered."""
        return SqlWakeups(lambda wakeups: self.database.listen(wakeups, self.means.rng))

    async def aclose(self) -> None:
        """Close the database."""
        await self.database.aclose()

    async def check_schema(self) -> None:
        """Raise SchemaError when the tables are missing or are not those of this version."""
        await self.run(schema.check(self.database.dialect))

    async def explain(self, job_id: int) -> Explanation:
        """Explain why a job does not run, or why it ran when it did; raises JobNotFound."""
        from windlass.store.calls import explain

        return await self.run(explain.explain(job_id))

    explain_sync = twin_of(explain)

    async def enqueue_on(self, connection: Any, jobs: Sequence[NewJob]) -> list[Enqueued]:
        """Insert jobs inside the caller's transaction on an asynchronous connection to the same database."""
        return await self.run(work.enqueue(jobs), connection)

    async def claim(self, slices: Slices, limit: int, lease: Lease, *, started: bool = True) -> list[Claimed]:
        """Take up to `limit` jobs in order; a suspect, whose last run ended in a lost lease, is never among them."""
        if not slices.claimable:
            return []
        call = work.claim(slices, limit, lease, started=started)
        claimed = await self.run(call)
        if claimed:
            self.wakeups.credit()
        return claimed

    async def renew(self, leases: Sequence[tuple[int, int, datetime | None]], length: timedelta) -> list[Held]:
        """Extend (id, token, started_at) leases and report which have started; what does not come back is lost."""
        held: list[Held] = []
        for start in range(0, len(leases), batches.MAX_ROWS):
            part = await self.run(work.renew(leases[start : start + batches.MAX_ROWS], length))
            held += await self._vouch(part, length)
        return held

    async def _vouch(self, held: list[Held], length: timedelta) -> list[Held]:
        """Vouch for leases not renewed because another transaction holds their rows: else they would be taken back."""
        skipped = [one for one in held if one.is_skipped]
        if not skipped:
            return held
        try:
            ends = await self.run(work.vouch(skipped, length))
        except StoreError as error:
            log.warning("%d leases whose rows are locked could not be vouched for: %s", len(skipped), error)
            return held
        return [
            one._replace(lease_expires_at=ends[one.id, one.token], is_skipped=False) if (one.id, one.token) in ends else one
            for one in held
        ]

    async def record_logs(self, logs: Sequence[tuple[int, int, str]]) -> None:
        """Write what runs (id, token, lines) have logged so far; what no longer holds its job is left out."""
        await self.run(work.record_logs(logs))

    async def progress(
        self, job_id: int, token: int, *, count: int | None = None, cursor: str | None = None, message: str | None = None
    ) -> None:
        """Note how far a run has come; raises LeaseLost when it is no longer ours."""
        call = work.progress(job_id, token, count=count, cursor=cursor, message=message)
        if not await self.run(call):
            raise LeaseLost(job_id)

    async def finish(self, endings: Sequence[Ending]) -> dict[int, JobState]:
        """End runs; returns the accepted ones with the state each was left in. A missing one lost its lease.

        Raises RowsLocked, with what was accepted, when others hold some of the jobs or their keys.
        """
        accepted: dict[int, JobState] = {}
        late = _Late()
        for cut in batches.cut([batches.size(ending) for ending in endings]):
            accepted |= await self._finish(endings[cut], late)
        if late.ids:
            raise RowsLocked(f"others hold {len(late.ids)} of {len(endings)} jobs, or their keys", late.ids, accepted)
        return accepted

    async def _finish(self, batch: Sequence[Ending], late: _Late) -> dict[int, JobState]:
        """Send a batch; one bad row must not hold back the others, so a refused batch is halved down to it."""
        try:
            return await self.run(work.finish(batch))
        except RowsLocked:
            return await self._finish_around(batch, late)
        except StoreRefused as error:
            if len(batch) == 1:
                return await self._finish_bad(batch[0].decided(), str(error))
        return await self._finish_parts(_halves(batch), late)

    async def _finish_parts(self, parts: Iterable[Sequence[Ending]], late: _Late) -> dict[int, JobState]:
        accepted: dict[int, JobState] = {}
        for part in parts:
            accepted |= await self._finish(part, late)
        return accepted

    async def _finish_around(self, batch: Sequence[Ending], late: _Late) -> dict[int, JobState]:
        """Leave out what others hold, and send the rest of a batch that waited too long."""
        late.waits += 1
        if len(batch) == 1 or late.waits > _MOST_WAITS:
            late.ids += [one.id for one in batch]
            return {}
        locked = await self.run(work.locked_jobs([one.id for one in batch]))
        late.ids += [one.id for one in batch if one.id in locked]
        free = [one for one in batch if one.id not in locked]
        # Only a job that goes back to waiting takes its key again, and may have to wait for its holder.
        parts: list[Sequence[Ending]] = [
            [one for one in free if (one.state is JobState.SCHEDULED) is waits] for waits in (False, True)
        ]
        if len(free) == len(batch) and not all(parts):
            parts = _halves(batch)
        return await self._finish_parts(filter(None, parts), late)

    async def _finish_bad(self, ending: Finish, why: str) -> dict[int, JobState]:
        log.error("job %d: the database refused its finish record, keeping the decision without content: %s", ending.id, why)
        try:
            return await self.run(work.finish([ending.stripped()]))
        except StoreRefused as error:
            log.error("job %d: even the bare decision was refused, failing the job: %s", ending.id, error)  # noqa: TRY400
            return await self.run(work.finish([ending.buried(why)]))

    async def stop(self, runs: Sequence[tuple[int, int, Run]]) -> list[int]:
        """Report that cancelled runs (id, token, run) have stopped; raises RowsLocked when others hold some of them."""
        try:
            return await self.run(work.stop(runs))
        except RowsLocked:
            locked = await self.run(work.locked_jobs([job_id for job_id, _, _ in runs]))
        free = [run for run in runs if run[0] not in locked]
        stopped = await self.run(work.stop(free)) if free else []
        if not locked:
            return stopped
        raise RowsLocked(f"others hold {len(locked)} of {len(runs)} jobs", locked, dict.fromkeys(stopped, JobState.CANCELLED))

    async def pull_each(
        self, pulls: Sequence[Pull], order: PickOrder = PickOrder.FIFO, *, found: Slices | None = None
    ) -> list[Claimed | None]:
        """Return for each pull a job or None, in one transaction; earlier pulls are served first.

        Pulls after the last answer were not tried; send them again. `found` saves a look if it is fresh.
        """
        if not pulls:
            return []
        call = pulls_of.pull_each(pulls, order, found=found)
        taken = await self.run(call)
        if any(taken):
            self.wakeups.credit()
        return taken

    async def give_back(self, job: Claimed) -> bool:
        """Return a job whose run never began; False when this lease does not hold it."""
        ending = decide(job, Released(), NO_RUN, now=job.claimed_at, rng=self.means.rng, profiles=self.means.profiles)
        return job.id in await self.finish([ending])

    async def heartbeat(self, job_id: int, token: int, extend: timedelta | None = None) -> Held:
        """Extend a pull worker's lease and return whether it should stop; raises JobNotFound or LeaseLost."""
        held = await self.run(reports.heartbeat(job_id, token, extend))
        [vouched] = await self._vouch([held], extension(extend))
        return vouched

    async def reclaim(self, contact: Contact | None = None, *, limit: int = batches.MAX_ROWS) -> list[int]:
        """Take back what was not renewed, if contact is steady; without a contact, whatever has ended."""
        moment = await self.run(work.contact())
        is_steady = contact is None or contact.touch(moment)
        try:
            return await self.run(work.reclaim(limit, moment, is_steady=is_steady))
        except (StoreRefused, RowsLocked) as error:
            log.error("a lost lease could not be taken back with the others, trying one by one: %s", error)  # noqa: TRY400
        found = await self.lapsed(limit) if is_steady else []
        return [job_id for lease in found for job_id in await self._reclaim_one(lease.job.id, moment)]

    async def _reclaim_one(self, job_id: int, moment: datetime) -> list[int]:
        call = work.reclaim(batches.MAX_ROWS, moment, only=job_id)
        try:
            return await self.run(call)
        except (StoreRefused, RowsLocked) as error:
            log.error("job %d cannot be taken back: %s", job_id, error)  # noqa: TRY400
            return []

    async def promote(self, limit: int = batches.MAX_ROWS) -> Promoted:
        """Make due jobs claimable, and send what was missed where its rule leads; returns when the next one is due."""
        promoted = await self.run(recurrence.promote(limit))
        if not promoted.has_missed:
            return promoted
        caught_up = await self.run(recurrence.catch_up(limit))
        again = await self.run(recurrence.promote(limit))
        return again._replace(jobs=promoted.jobs + caught_up + again.jobs)

    async def spawn(self, limit: int = batches.MAX_ROWS) -> list[Enqueued]:
        """Let due templates enqueue their jobs; one whose rules cannot be read becomes a dead letter."""
        spawned: list[Enqueued] = []
        for template in await self.run(recurrence.due_templates(limit)):
            answer = await self.run(templates.spawn(template.id, template.run_at))
            if answer is not None and answer.error is not None:
                log.error("template %d cannot spawn and was buried: %s", template.id, answer.error)
            elif answer is not None and answer.child is not None:
                spawned.append(answer.child)
        return spawned

    async def age(self, limit: int = aging.MAX_BATCH) -> int:
        """Raise the priority of jobs that have waited for long, in batches; returns how many."""
        return await age(self, limit)

    async def age_some(self, cursor: str | None = None, *, at_most: int = aging.MAX_FOUND) -> Swept:
        """Go on with a pass of aging from where the last part ended, for about `at_most` jobs."""
        return await age_some(self, cursor, at_most=at_most)

    async def bulk(
        self,
        verb: str,
        wanted: JobFilter,
        options: Mapping[str, Any] | None = None,
        *,
        ids: Sequence[int] | None = None,
        dry_run: bool = False,
        batch: int = batches.MAX_ROWS,
        on_batch: Callable[[Bulk], object] | None = None,
    ) -> Bulk:
        """Do what a verb does, by its name and with its options, to every job a filter matches, or to those of some jobs.

        Each batch is a transaction of its own, so an error leaves the batches before it done. Jobs that come meanwhile are
        left alone. `on_batch` is called after each batch with what was done so far.
        """
        return await run_bulk(self, verb, wanted, options or {}, ids=ids, dry_run=dry_run, batch=batch, on_batch=on_batch)

    async def bulk_part(
        self,
        verb: str,
        wanted: JobFilter,
        options: Mapping[str, Any] | None = None,
        *,
        ids: Sequence[int] | None = None,
        after: int = 0,
        until: int | None = None,
        limit: int = MOST_OF_A_PART,
    ) -> BulkPart:
        """Do what `bulk` does to at most `limit` jobs with a number above `after`; the answer has where to go on."""
        return await run_part(self, verb, wanted, options or {}, ids=ids, after=after, until=until, limit=limit)
