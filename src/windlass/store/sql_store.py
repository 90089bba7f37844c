"""The store for asyncio: each verb one call over one database."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cached_property
from operator import itemgetter
from random import Random
from typing import Any

from windlass.core.audit import Actor
from windlass.core.bulk import Bulk
from windlass.core.checks import check_range
from windlass.core.chore import Swept
from windlass.core.contact import Contact
from windlass.core.filter import JobFilter
from windlass.core.job import (
    Claimed,
    Count,
    DeadLetter,
    Edit,
    Enqueued,
    Execution,
    Held,
    Job,
    JobState,
    Lapsed,
    Lease,
    NewJob,
    Promoted,
    Slices,
    Stored,
)
from windlass.core.outcome import NO_RUN, Finish, Released, Run, decide
from windlass.core.page import JobQuery, Page
from windlass.core.pull import PickOrder, Pull
from windlass.core.related import Related, Tree
from windlass.core.report import Answer, JobStatus, Report, extension
from windlass.core.retry import PROFILES, Profile
from windlass.core.transitions import Moved
from windlass.errors import ExecutionNotFound, JobNotFound, LeaseLost, RowsLocked, StoreError, StoreRefused
from windlass.store import documents
from windlass.store.aging import age, age_some
from windlass.store.audit import SqlAudit
from windlass.store.breakers import SqlBreakers
from windlass.store.calls import (
    aging,
    audit,
    breakers,
    bulk,
    control,
    endings,
    lists,
    override,
    reads,
    recurrence,
    related,
    schema,
    templates,
    work,
)
from windlass.store.calls import pull as pulls_of
from windlass.store.calls import report as reports
from windlass.store.calls.call import Call
from windlass.store.calls.clone import clone
from windlass.store.chores import SqlChores
from windlass.store.crawls import SqlCrawls
from windlass.store.cron_migration import SqlCronMigration
from windlass.store.database import Bounded, Database
from windlass.store.documents import Entry
from windlass.store.feeds import SqlFeeds
from windlass.store.items import SqlItems
from windlass.store.lanes import SqlLanes
from windlass.store.letters import SqlLetters
from windlass.store.pages import SqlPages
from windlass.store.reminders import SqlReminders
from windlass.store.retention import SqlRetention
from windlass.store.runs import SqlRuns
from windlass.store.schedules import SqlSchedules
from windlass.store.sessions import SqlSessions
from windlass.store.settings import SqlSettings
from windlass.store.signatures import SqlSignatures
from windlass.store.sources import SqlSources
from windlass.store.tasks import SqlTasks
from windlass.store.tokens import SqlTokens
from windlass.store.wakeups import SqlWakeups
from windlass.store.workers import SqlWorkers

log = logging.getLogger("windlass.store")

_Ending = tuple[Finish, Entry]
# Each costs the moment that a statement waits for a row: a report never takes longer than these together.
_MOST_WAITS = 8


class _Late:
    """What a finish has left out because others hold it, and how often it had to wait to learn that."""

    def __init__(self) -> None:
        self.ids: list[int] = []
        self.waits = 0


def _halves(batch: Sequence[_Ending]) -> list[Sequence[_Ending]]:
    middle = len(batch) // 2
    return [batch[:middle], batch[middle:]]


class SqlStore:
    """Every verb of the engine. `now` is for tests; production leaves the clock to the database."""

    def __init__(
        self,
        database: Database,
        *,
        rng: Random,
        profiles: Mapping[str, Profile] = PROFILES,
        most_arms: int = work.MAX_ARMS,
        actor: Actor | None = None,
    ) -> None:
        """Speak to `database`; `profiles` say what rows leave open about retries, `actor` whom the audit log names."""
        self._db = database
        self._rng = rng
        self._profiles = profiles
        self._most_arms = most_arms
        self._actor = actor
        self._judge = work.Judge(rng, profiles)

    def acting(self, actor: Actor) -> SqlStore:
        """Give the same store with its operator verbs audited, each in the transaction of what it does."""
        return SqlStore(self._db, rng=self._rng, profiles=self._profiles, most_arms=self._most_arms, actor=actor)

    def bounded(self, timeout: timedelta) -> SqlStore:
        """Give the same store whose reads raise StoreBusy when they take longer."""
        return self.over(Bounded(self._db, timeout))

    def over(self, database: Database) -> SqlStore:
        """Give the same store over another adapter."""
        return SqlStore(database, rng=self._rng, profiles=self._profiles, most_arms=self._most_arms, actor=self._actor)

    async def _operate(self, call: Call[Moved], now: datetime | None) -> Moved:
        return await self._db.run(audit.audited(call, self._actor, audit.moved, now))

    @property
    def runs(self) -> SqlRuns:
        """How runs went."""
        return SqlRuns(self._db)

    @property
    def database(self) -> Database:
        """The adapter below."""
        return self._db

    @property
    def breakers(self) -> SqlBreakers:
        """The circuit breakers."""
        return SqlBreakers(self._db, self._actor)

    @property
    def items(self) -> SqlItems:
        """What workers have found."""
        return SqlItems(self._db)

    @property
    def sources(self) -> SqlSources:
        """What `crawl` crawls."""
        return SqlSources(self._db, self._actor)

    @property
    def reminders(self) -> SqlReminders:
        """Mails that wait for their time."""
        return SqlReminders(self._db, self._actor)

    @property
    def pages(self) -> SqlPages:
        """What crawls have found."""
        return SqlPages(self._db, self._actor)

    @property
    def crawls(self) -> SqlCrawls:
        """Crawls that go on."""
        return SqlCrawls(self._db)

    @property
    def feeds(self) -> SqlFeeds:
        """Feeds and who subscribes to them."""
        return SqlFeeds(self._db, self._rng, self._actor)

    @property
    def settings(self) -> SqlSettings:
        """What operators have set."""
        return SqlSettings(self._db, self._actor)

    @property
    def letters(self) -> SqlLetters:
        """What operators do with dead letters."""
        return SqlLetters(self._db, self._actor)

    @property
    def workers(self) -> SqlWorkers:
        """The processes that run jobs."""
        return SqlWorkers(self._db)

    @property
    def schedules(self) -> SqlSchedules:
        """Recurring jobs by their name."""
        return SqlSchedules(self._db, self._rng, self._actor)

    @property
    def cron_migration(self) -> SqlCronMigration:
        """Cron expressions that become intervals."""
        return SqlCronMigration(self._db, self._actor)

    @property
    def lanes(self) -> SqlLanes:
        """Lanes: pause, resume, drain."""
        return SqlLanes(self._db, self._actor)

    @property
    def tasks(self) -> SqlTasks:
        """Tasks: declare, pause, resume, drain."""
        return SqlTasks(self._db, self._actor)

    @property
    def chores(self) -> SqlChores:
        """Upkeep that one instance of many does at a time."""
        return SqlChores(self._db, self._actor)

    @property
    def signatures(self) -> SqlSignatures:
        """Signed requests that were taken."""
        return SqlSignatures(self._db)

    @property
    def retention(self) -> SqlRetention:
        """What is let go of."""
        return SqlRetention(self._db)

    @property
    def audit(self) -> SqlAudit:
        """Who did what."""
        return SqlAudit(self._db, self._actor)

    @property
    def tokens(self) -> SqlTokens:
        """The credentials of programs."""
        return SqlTokens(self._db, self._actor)

    @property
    def sessions(self) -> SqlSessions:
        """Browsers that logged in."""
        return SqlSessions(self._db, self._actor)

    @cached_property
    def wakeups(self) -> SqlWakeups:
        """Hints that it is worth looking before the next poll; silent until entered."""
        return SqlWakeups(lambda wakeups: self._db.listen(wakeups, self._rng))

    async def aclose(self) -> None:
        """Let go of the database."""
        await self._db.aclose()

    async def clock(self, now: datetime | None = None) -> datetime:
        """Ask the database what time it is."""
        return await self._db.run(work.clock(now))

    async def check_schema(self) -> None:
        """Raise SchemaError when the tables are missing or are not those of this version."""
        await self._db.run(schema.check(self._db.dialect))

    async def enqueue(self, jobs: Sequence[NewJob], now: datetime | None = None) -> list[Enqueued]:
        """Insert jobs, all or none; returns after the commit, one answer for each in order."""
        if not jobs:
            return []
        return await self._db.run(work.enqueue(jobs, now, self._rng))

    async def enqueue_and_get(self, jobs: Sequence[NewJob], now: datetime | None = None) -> list[Stored]:
        """Insert jobs as `enqueue` does; the answers are the rows as that left them."""
        return await self._db.run(work.enqueue_and_get(jobs, now, self._rng)) if jobs else []

    async def enqueue_on(self, connection: Any, jobs: Sequence[NewJob], now: datetime | None = None) -> list[Enqueued]:
        """Insert jobs inside the caller's transaction on an asynchronous connection to the same database."""
        return await self._db.run_within(connection, work.enqueue(jobs, now, self._rng)) if jobs else []

    async def slices(self, now: datetime | None = None) -> Slices:
        """Find which lanes and tasks have pending work that no gate holds back."""
        return await self._db.run(work.slices(now))

    async def claim(
        self, slices: Slices, limit: int, lease: Lease, *, started: bool = True, now: datetime | None = None
    ) -> list[Claimed]:
        """Take up to `limit` jobs in order; a suspect, whose last run ended in a lost lease, is never among them."""
        if not slices.claimable:
            return []
        call = work.claim(slices, limit, lease, started=started, most_arms=self._most_arms, now=now)
        claimed = await self._db.run(call)
        if claimed:
            self.wakeups.credit()
        return claimed

    async def claim_suspect(self, slices: Slices, lease: Lease, now: datetime | None = None) -> Claimed | None:
        """Take the first suspect, and start it; it is meant to run in quarantine."""
        if not slices.claimable_suspects:
            return None
        return await self._db.run(work.claim_suspect(slices, lease, most_arms=self._most_arms, now=now))

    async def claim_probe(self, slices: Slices, breaker: str, lease: Lease, now: datetime | None = None) -> Claimed | None:
        """Take one job of the slices that wait for this breaker, as its one probe over the fleet, and start it."""
        return await self._db.run(breakers.claim_probe(slices, breaker, lease, now))

    async def renew(
        self, leases: Sequence[tuple[int, int, datetime | None]], length: timedelta, now: datetime | None = None
    ) -> list[Held]:
        """Extend (id, token, started_at) leases and report which have started; what does not come back is lost."""
        held: list[Held] = []
        for start in range(0, len(leases), documents.MAX_ROWS):
            part = await self._db.run(work.renew(leases[start : start + documents.MAX_ROWS], length, now))
            held += await self._vouch(part, length, now)
        return held

    async def _vouch(self, held: list[Held], length: timedelta, now: datetime | None) -> list[Held]:
        """Vouch for leases that could not be renewed because somebody holds their rows, or they would be taken back."""
        skipped = [one for one in held if one.is_skipped]
        if not skipped:
            return held
        try:
            ends = await self._db.run(work.vouch(skipped, length, now))
        except StoreError as error:
            log.warning("%d leases whose rows are locked could not be vouched for: %s", len(skipped), error)
            return held
        return [
            one._replace(lease_expires_at=ends[one.id, one.token], is_skipped=False) if (one.id, one.token) in ends else one
            for one in held
        ]

    async def progress(
        self,
        job_id: int,
        token: int,
        *,
        count: int | None = None,
        cursor: str | None = None,
        message: str | None = None,
        now: datetime | None = None,
    ) -> None:
        """Note how far a run has come; raises LeaseLost when it is no longer ours."""
        call = work.progress(job_id, token, count=count, cursor=cursor, message=message, now=now)
        if not await self._db.run(call):
            raise LeaseLost(job_id)

    async def finish(self, endings: Sequence[Finish], now: datetime | None = None) -> dict[int, JobState]:
        """End runs; returns the accepted ones with the state each was left in. A missing one lost its lease.

        Raises RowsLocked, with what was accepted, when others hold some of the jobs or their keys.
        """
        accepted: dict[int, JobState] = {}
        late = _Late()
        entries = [documents.finish(ending) for ending in endings]
        for cut in documents.batches(entries):
            accepted |= await self._finish(list(zip(endings[cut], entries[cut], strict=True)), late, now)
        if late.ids:
            raise RowsLocked(f"others hold {len(late.ids)} of {len(endings)} jobs, or their keys", late.ids, accepted)
        return accepted

    async def _finish(self, batch: Sequence[_Ending], late: _Late, now: datetime | None) -> dict[int, JobState]:
        """Send a batch; one bad row must not hold back the others, so a refused batch is halved down to it."""
        try:
            return await self._db.run(work.finish([one for one, _ in batch], [entry for _, entry in batch], now))
        except RowsLocked:
            return await self._finish_around(batch, late, now)
        except StoreRefused as error:
            if len(batch) == 1:
                return await self._finish_bad(batch[0][0], str(error), now)
        return await self._finish_parts(_halves(batch), late, now)

    async def _finish_parts(self, parts: Iterable[Sequence[_Ending]], late: _Late, now: datetime | None) -> dict[int, JobState]:
        accepted: dict[int, JobState] = {}
        for part in parts:
            accepted |= await self._finish(part, late, now)
        return accepted

    async def _finish_around(self, batch: Sequence[_Ending], late: _Late, now: datetime | None) -> dict[int, JobState]:
        """Leave out what others hold, and send the rest of a batch that waited too long."""
        late.waits += 1
        if len(batch) == 1 or late.waits > _MOST_WAITS:
            late.ids += [one.id for one, _ in batch]
            return {}
        locked = await self._db.run(work.locked_jobs([one.id for one, _ in batch]))
        late.ids += [one.id for one, _ in batch if one.id in locked]
        free = [part for part in batch if part[0].id not in locked]
        # Only a job that goes back to waiting takes its key again, and may have to wait for whoever has it.
        parts: list[Sequence[_Ending]] = [
            [part for part in free if (part[0].state is JobState.SCHEDULED) is waits] for waits in (False, True)
        ]
        if len(free) == len(batch) and not all(parts):
            parts = _halves(batch)
        return await self._finish_parts(filter(None, parts), late, now)

    async def _finish_bad(self, ending: Finish, why: str, now: datetime | None) -> dict[int, JobState]:
        log.error("job %d: the database refused its finish record, keeping the decision without content: %s", ending.id, why)
        try:
            return await self._db.run(work.finish([ending.stripped()], now=now))
        except StoreRefused as error:
            log.error("job %d: even the bare decision was refused, failing the job: %s", ending.id, error)  # noqa: TRY400
            return await self._db.run(work.finish([ending.buried(why)], now=now))

    async def stop(self, runs: Sequence[tuple[int, int, Run]], now: datetime | None = None) -> list[int]:
        """Say of cancelled (id, token, run) that they have stopped; raises RowsLocked when others hold some of them."""
        try:
            return await self._db.run(work.stop(runs, now))
        except RowsLocked:
            locked = await self._db.run(work.locked_jobs([job_id for job_id, _, _ in runs]))
        free = [run for run in runs if run[0] not in locked]
        stopped = await self._db.run(work.stop(free, now)) if free else []
        if not locked:
            return stopped
        raise RowsLocked(f"others hold {len(locked)} of {len(runs)} jobs", locked, dict.fromkeys(stopped, JobState.CANCELLED))

    async def pull(self, slices: Slices, lease: Lease, pull_id: str | None = None, now: datetime | None = None) -> Claimed | None:
        """Take one job to be worked on at once; the same worker and `pull_id` get the same lease again."""
        return await self._db.run(reports.pull(slices, lease, pull_id, most_arms=self._most_arms, now=now))

    async def pull_each(
        self,
        pulls: Sequence[Pull],
        order: PickOrder = PickOrder.FIFO,
        *,
        found: Slices | None = None,
        now: datetime | None = None,
    ) -> list[Claimed | None]:
        """Give each worker one job of its lane or none, in one transaction; who is named first is served first.

        Wishes beyond the last answer were not looked at: ask for them again. `found` saves a look if it is fresh.
        """
        if not pulls:
            return []
        call = pulls_of.pull_each(pulls, order, self._rng, found=found, most_arms=self._most_arms, now=now)
        taken = await self._db.run(call)
        if any(taken):
            self.wakeups.credit()
        return taken

    async def give_back(self, job: Claimed, now: datetime | None = None) -> bool:
        """Return a job whose run never began; False when it is held by somebody else or not at all."""
        ending = decide(job, Released(), NO_RUN, now=job.claimed_at, rng=self._rng, profiles=self._profiles)
        return job.id in await self.finish([ending], now)

    async def report(self, report: Report, now: datetime | None = None) -> Answer:
        """Do everything a pull worker's report asks for, or nothing; raises JobNotFound, LeaseLost or TokenNeeded."""
        return await self._db.run(reports.report(report, self._rng, self._profiles, now))

    async def heartbeat(self, job_id: int, token: int, extend: timedelta | None = None, now: datetime | None = None) -> Held:
        """Extend a pull worker's lease and say whether it should stop; raises JobNotFound or LeaseLost."""
        held = await self._db.run(reports.heartbeat(job_id, token, extend, now))
        [vouched] = await self._vouch([held], extension(extend), now)
        return vouched

    async def job_status(self, job_id: int) -> JobStatus:
        """Say how a job stands; raises JobNotFound."""
        return await self._db.run(reports.job_status(job_id))

    async def lapsed(self, limit: int = documents.MAX_ROWS, now: datetime | None = None) -> list[Lapsed]:
        """Read leases past their end."""
        return await self._db.run(work.lapsed(limit, now))

    async def reclaim(
        self, contact: Contact | None = None, *, limit: int = documents.MAX_ROWS, now: datetime | None = None
    ) -> list[int]:
        """Take back what nobody renewed, if contact is steady; without a contact, whatever has ended."""
        moment = await self._db.run(work.contact(now))
        is_steady = contact is None or contact.touch(moment)
        try:
            return await self._db.run(work.reclaim(limit, moment, self._judge, is_steady=is_steady, now=now))
        except (StoreRefused, RowsLocked) as error:
            log.error("a lost lease could not be taken back with the others, trying one by one: %s", error)  # noqa: TRY400
        found = await self.lapsed(limit, moment) if is_steady else []
        return [job_id for lease in found for job_id in await self._reclaim_one(lease.job.id, moment, now)]

    async def _reclaim_one(self, job_id: int, moment: datetime, now: datetime | None) -> list[int]:
        call = work.reclaim(documents.MAX_ROWS, moment, self._judge, only=job_id, now=now)
        try:
            return await self._db.run(call)
        except (StoreRefused, RowsLocked) as error:
            log.error("job %d cannot be taken back: %s", job_id, error)  # noqa: TRY400
            return []

    async def promote(self, limit: int = documents.MAX_ROWS, now: datetime | None = None) -> Promoted:
        """Make due jobs claimable, and send what was missed where its rule says; tells when the next one is due."""
        promoted = await self._db.run(recurrence.promote(limit, now))
        if not promoted.has_missed:
            return promoted
        caught_up = await self._db.run(recurrence.catch_up(limit, self._rng, now))
        again = await self._db.run(recurrence.promote(limit, now))
        return again._replace(jobs=promoted.jobs + caught_up + again.jobs)

    async def spawn(self, limit: int = documents.MAX_ROWS, now: datetime | None = None) -> list[Enqueued]:
        """Let due templates enqueue their jobs; one whose rules cannot be read becomes a dead letter."""
        spawned: list[Enqueued] = []
        for template in await self._db.run(recurrence.due_templates(limit, now)):
            answer = await self._db.run(templates.spawn(template.id, template.run_at, self._rng, now))
            if answer is not None and answer.error is not None:
                log.error("template %d cannot spawn and was buried: %s", template.id, answer.error)
            elif answer is not None and answer.child is not None:
                spawned.append(answer.child)
        return spawned

    async def age(self, limit: int = aging.MAX_BATCH, now: datetime | None = None) -> int:
        """Raise the priority of jobs that have waited for long, in batches; returns how many."""
        return await age(self._db, limit, now)

    async def age_some(self, cursor: str | None = None, *, at_most: int = aging.MAX_FOUND, now: datetime | None = None) -> Swept:
        """Go on with a pass of aging from where the last part ended, for about `at_most` jobs."""
        return await age_some(self._db, cursor, at_most=at_most, now=now)

    async def cancel(self, ids: Sequence[int], reason: str | None = None, now: datetime | None = None) -> Moved:
        """Cancel jobs at once; a late success of a running one is refused."""
        return await self._operate(control.cancel(ids, reason, now), now)

    async def stop_run(self, ids: Sequence[int], now: datetime | None = None) -> Moved:
        """Ask running recurring jobs to end this run."""
        return await self._operate(control.stop_run(ids, now), now)

    async def pause(self, ids: Sequence[int], now: datetime | None = None) -> Moved:
        """Hold waiting jobs until they are resumed."""
        return await self._operate(control.pause(ids, now), now)

    async def resume(self, ids: Sequence[int], now: datetime | None = None) -> Moved:
        """Let paused jobs go on; recurring ones count anew from now."""
        return await self._operate(control.resume(ids, now, self._rng), now)

    async def disable(self, ids: Sequence[int], now: datetime | None = None) -> Moved:
        """Stop jobs from running by themselves; a running one finishes its run first."""
        return await self._operate(control.disable(ids, now), now)

    async def enable(self, ids: Sequence[int], now: datetime | None = None) -> Moved:
        """Undo `disable`, keeping the next time."""
        return await self._operate(control.enable(ids, now), now)

    async def run_now(self, ids: Sequence[int], now: datetime | None = None) -> Moved:
        """Run waiting jobs now, running ones once more after their run."""
        return await self._operate(control.run_now(ids, now), now)

    async def retry(self, ids: Sequence[int], now: datetime | None = None) -> Moved:
        """Start failed jobs afresh; raises SlotTaken for a single one whose unique key is held."""
        return await self._operate(control.retry(ids, now), now)

    async def boost(self, ids: Sequence[int], amount: int, now: datetime | None = None) -> Moved:
        """Raise the priority of jobs that are not over, up to 100."""
        return await self._operate(control.boost(ids, amount, now), now)

    async def set_priority(self, ids: Sequence[int], priority: int, now: datetime | None = None) -> Moved:
        """Give jobs that are not over a new priority, which is also the one they return to."""
        return await self._operate(control.set_priority(ids, priority, now), now)

    async def override_status(
        self, ids: Sequence[int], status: JobState, *, by: str, lease_length: timedelta, now: datetime | None = None
    ) -> Moved:
        """Put jobs into a state by hand, round the table of moves; raises SlotTaken for a single one whose key is held."""
        token = self._new_token()
        call = override.override_status(ids, status, by=by, lease_length=lease_length, token=token, now=now)
        return await self._operate(call, now)

    def _new_token(self) -> int:
        return self._rng.getrandbits(62)

    async def clone(self, ids: Sequence[int], created_by: str | None = None, now: datetime | None = None) -> Moved:
        """Make new jobs from finished ones; the answer has the new ones."""
        return await self._operate(clone(ids, created_by, now), now)

    async def delete(self, ids: Sequence[int], now: datetime | None = None) -> Moved:
        """Remove jobs that nobody holds; the answer has them as they were."""
        return await self._operate(control.delete(ids), now)

    async def bury(self, ids: Sequence[int], error: str, now: datetime | None = None) -> Moved:
        """Fail waiting jobs for good, each with a dead letter."""
        return await self._operate(endings.bury(ids, error, now), now)

    async def fail(self, ids: Sequence[int], error: str, *, will_retry: bool, now: datetime | None = None) -> Moved:
        """End runs as failed, by policy or for good; due jobs wait for their retry, others that wait fail only for good."""
        return await self._operate(endings.fail(ids, error, will_retry=will_retry, judge=self._judge, now=now), now)

    async def take_lease(self, ids: Sequence[int], now: datetime | None = None) -> Moved:
        """End leases as if nobody had renewed them."""
        return await self._operate(endings.take_lease(ids, judge=self._judge, now=now), now)

    async def bulk(
        self,
        verb: str,
        wanted: JobFilter,
        options: Mapping[str, Any] | None = None,
        *,
        ids: Sequence[int] | None = None,
        dry_run: bool = False,
        batch: int = documents.MAX_ROWS,
        now: datetime | None = None,
    ) -> Bulk:
        """Do what a verb does, by its name and with its options, to every job a filter matches, or to those of some jobs.

        Each batch is a transaction of its own, so an error leaves the batches before it done. Jobs that come meanwhile are
        left alone.
        """
        check_range("batch", batch, 1, documents.MAX_ROWS)
        known = {"judge": self._judge, "token": self._new_token(), "rng": self._rng, "now": now}
        make = bulk.maker(verb, options or {}, known)
        size = min(batch, bulk.MOST_AT_ONCE.get(verb, batch))
        done = Bulk()
        async for found in self._pages(wanted, ids):
            if dry_run:
                done = done.plus(Bulk(len(found)))
                continue
            for start in range(0, len(found), size):
                call = bulk.batch(make, wanted, found[start : start + size])
                part, _ = await self._db.run(audit.audited(call, self._actor, itemgetter(1), now))
                done = done.plus(part)
        return done

    async def _pages(self, wanted: JobFilter, ids: Sequence[int] | None) -> AsyncIterator[Sequence[int]]:
        """Find the jobs of a bulk, some at a time."""
        if ids is not None:
            for start in range(0, len(chosen := sorted(set(ids))), documents.MAX_ROWS):
                part = await self._db.run(bulk.matching(wanted, chosen[start : start + documents.MAX_ROWS]))
                yield part
            return
        until = await self._db.run(bulk.highest())
        page = bulk.Page([], 0)
        while page.end is not None:
            page = await self._db.run(bulk.page_ids(wanted, page.end, until))
            yield page.ids

    async def edit(self, job_id: int, changes: Edit, now: datetime | None = None) -> Moved:
        """Change a job; only a new cadence moves its next run."""
        return await self._operate(control.edit(job_id, changes, now), now)

    async def get(self, job_id: int) -> Job:
        """Read one job; raises JobNotFound."""
        found = await self._db.run(reads.get_jobs([job_id]))
        if not found:
            raise JobNotFound(job_id)
        return found[0]

    async def get_many(self, ids: Sequence[int]) -> list[Job]:
        """Read jobs by number, in the order of their numbers; unknown ones are left out."""
        return await self._db.run(reads.get_jobs(ids))

    async def list_jobs(self, query: JobQuery | None = None) -> Page:
        """Read a page of jobs; without a query, the newest."""
        return await self._db.run(lists.list_jobs(query or JobQuery()))

    async def list_executions(
        self, job_id: int, *, before: int = reads.MAX_NUMBER, limit: int = reads.MAX_LIST, offset: int = 0
    ) -> list[Execution]:
        """Read a job's runs, the one that goes on first, then newest first."""
        return await self._db.run(reads.list_executions(job_id, before=before, limit=limit, offset=offset))

    async def get_execution(self, job_id: int, number: int) -> Execution:
        """Read one run; raises ExecutionNotFound."""
        found = await self._db.run(reads.get_execution(job_id, number))
        if not found:
            raise ExecutionNotFound(job_id, number)
        return found[0]

    async def count_executions(self, job_id: int) -> int:
        """Count a job's runs that are kept, with the one that goes on, without reading them."""
        return await self._db.run(reads.count_executions(job_id))

    async def list_by_correlation(self, correlation_id: str, *, after: int = 0) -> Related:
        """Read some jobs of one correlation after a number, oldest first; a job's own UUID means the job and its children."""
        return await self._db.run(related.list_by_correlation(correlation_id, after=after))

    async def list_tree(self, job_id: int) -> Tree:
        """Read a job's first ancestor and what came of it, level by level; nothing when there is no such job."""
        return await self._db.run(related.list_tree(job_id))

    async def list_dead_letters(self, job_id: int) -> list[DeadLetter]:
        """Read a job's dead letters, oldest first."""
        return await self._db.run(reads.list_dead_letters(job_id))

    async def count_jobs(self) -> list[Count]:
        """Count jobs by task, lane, state and reason, exactly and without reading them."""
        return await self._db.run(reads.count_jobs())

    async def count_task(self, task: str) -> list[Count]:
        """Count a task's jobs by lane, state and reason; templates and what is paused or cancelled are left out."""
        return await self._db.run(reads.count_task(task))

    async def fold_counts(self, limit: int = 10_000) -> int:
        """Fold count deltas; returns how many were folded."""
        return await self._db.run(reads.fold_counts(limit))
