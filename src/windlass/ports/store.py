"""The verbs of the engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Protocol, Self

from windlass.core.audit import Actor
from windlass.core.bulk import Bulk
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
from windlass.core.outcome import Finish, Run
from windlass.core.page import JobQuery, Page
from windlass.core.pull import PickOrder, Pull
from windlass.core.related import Related, Tree
from windlass.core.report import Answer, JobStatus, Report
from windlass.core.transitions import Moved
from windlass.ports.audit import Audit
from windlass.ports.breakers import Breakers
from windlass.ports.chores import Chores
from windlass.ports.crawls import Crawls
from windlass.ports.cron_migration import CronMigration
from windlass.ports.feeds import Feeds
from windlass.ports.items import Items
from windlass.ports.lanes import Lanes
from windlass.ports.letters import Letters
from windlass.ports.pages import Pages
from windlass.ports.pruning import Pruning
from windlass.ports.reminders import Reminders
from windlass.ports.runs import Runs
from windlass.ports.schedules import Schedules
from windlass.ports.sessions import Sessions
from windlass.ports.settings import Settings
from windlass.ports.signatures import Signatures
from windlass.ports.sources import Sources
from windlass.ports.tasks import Tasks
from windlass.ports.tokens import Tokens
from windlass.ports.wakeups import Wakeups
from windlass.ports.workers import Workers


class Store(Protocol):
    """Every verb of the engine. `now` is for tests; production leaves the clock to the database."""

    def acting(self, actor: Actor) -> Self:
        """Give the same store with its operator verbs audited, each in the transaction of what it does."""
        ...

    def bounded(self, timeout: timedelta) -> Self:
        """Give the same store whose reads raise StoreBusy when they take longer."""
        ...

    @property
    def breakers(self) -> Breakers:
        """The circuit breakers."""
        ...

    @property
    def items(self) -> Items:
        """What workers have found."""
        ...

    @property
    def reminders(self) -> Reminders:
        """Mails that wait for their time."""
        ...

    @property
    def sources(self) -> Sources:
        """What `crawl` crawls."""
        ...

    @property
    def pages(self) -> Pages:
        """What crawls have found."""
        ...

    @property
    def crawls(self) -> Crawls:
        """Crawls that go on."""
        ...

    @property
    def feeds(self) -> Feeds:
        """Feeds and who subscribes to them."""
        ...

    @property
    def settings(self) -> Settings:
        """What operators have set."""
        ...

    @property
    def workers(self) -> Workers:
        """The processes that run jobs."""
        ...

    @property
    def schedules(self) -> Schedules:
        """Recurring jobs by their name."""
        ...

    @property
    def cron_migration(self) -> CronMigration:
        """Cron expressions that become intervals."""
        ...

    @property
    def lanes(self) -> Lanes:
        """Lanes: pause, resume, drain."""
        ...

    @property
    def tasks(self) -> Tasks:
        """Tasks: declare, pause, resume, drain."""
        ...

    @property
    def chores(self) -> Chores:
        """Upkeep that one instance of many does at a time."""
        ...

    @property
    def signatures(self) -> Signatures:
        """Signed requests that were taken."""
        ...

    @property
    def retention(self) -> Pruning:
        """What is let go of."""
        ...

    @property
    def audit(self) -> Audit:
        """Who did what."""
        ...

    @property
    def tokens(self) -> Tokens:
        """The credentials of programs."""
        ...

    @property
    def sessions(self) -> Sessions:
        """Browsers that logged in."""
        ...

    @property
    def wakeups(self) -> Wakeups:
        """Hints that it is worth looking before the next poll; silent until entered."""
        ...

    @property
    def runs(self) -> Runs:
        """How runs went."""
        ...

    async def aclose(self) -> None:
        """Let go of the database."""
        ...

    async def clock(self, now: datetime | None = None) -> datetime:
        """Ask the database what time it is."""
        ...

    async def check_schema(self) -> None:
        """Raise SchemaError when the tables are missing or are not those of this version."""
        ...

    async def enqueue(self, jobs: Sequence[NewJob], now: datetime | None = None) -> list[Enqueued]:
        """Insert jobs, all or none; returns after the commit, one answer for each in order."""
        ...

    async def enqueue_and_get(self, jobs: Sequence[NewJob], now: datetime | None = None) -> list[Stored]:
        """Insert jobs as `enqueue` does; the answers are the rows as that left them."""
        ...

    async def enqueue_on(self, connection: Any, jobs: Sequence[NewJob], now: datetime | None = None) -> list[Enqueued]:
        """Insert jobs inside the caller's transaction on an asynchronous connection to the same database."""
        ...

    async def slices(self, now: datetime | None = None) -> Slices:
        """Find which lanes and tasks have pending work that no gate holds back."""
        ...

    async def claim(
        self, slices: Slices, limit: int, lease: Lease, *, started: bool = True, now: datetime | None = None
    ) -> list[Claimed]:
        """Take up to `limit` jobs in order; a suspect, whose last run ended in a lost lease, is never among them."""
        ...

    async def claim_suspect(self, slices: Slices, lease: Lease, now: datetime | None = None) -> Claimed | None:
        """Take the first suspect, and start it; it is meant to run in quarantine."""
        ...

    async def claim_probe(self, slices: Slices, breaker: str, lease: Lease, now: datetime | None = None) -> Claimed | None:
        """Take one job of the slices that wait for this breaker, as its one probe over the fleet, and start it."""
        ...

    async def renew(
        self, leases: Sequence[tuple[int, int, datetime | None]], length: timedelta, now: datetime | None = None
    ) -> list[Held]:
        """Extend (id, token, started_at) leases and report which have started; what does not come back is lost."""
        ...

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
        ...

    async def finish(self, endings: Sequence[Finish], now: datetime | None = None) -> dict[int, JobState]:
        """End runs; returns the accepted ones with the state each was left in. A missing one lost its lease."""
        ...

    async def stop(self, runs: Sequence[tuple[int, int, Run]], now: datetime | None = None) -> list[int]:
        """Say of cancelled (id, token, run) that they have stopped."""
        ...

    async def pull(self, slices: Slices, lease: Lease, pull_id: str | None = None, now: datetime | None = None) -> Claimed | None:
        """Take one job to be worked on at once; the same worker and `pull_id` get the same lease again."""
        ...

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
        ...

    async def give_back(self, job: Claimed, now: datetime | None = None) -> bool:
        """Return a job whose run never began; False when it is held by somebody else or not at all."""
        ...

    async def report(self, report: Report, now: datetime | None = None) -> Answer:
        """Do everything a pull worker's report asks for, or nothing; raises JobNotFound, LeaseLost or TokenNeeded."""
        ...

    async def heartbeat(self, job_id: int, token: int, extend: timedelta | None = None, now: datetime | None = None) -> Held:
        """Extend a pull worker's lease and say whether it should stop; raises JobNotFound or LeaseLost."""
        ...

    async def job_status(self, job_id: int) -> JobStatus:
        """Say how a job stands; raises JobNotFound."""
        ...

    async def lapsed(self, limit: int = 500, now: datetime | None = None) -> list[Lapsed]:
        """Read leases past their end."""
        ...

    async def reclaim(self, contact: Contact | None = None, *, limit: int = 500, now: datetime | None = None) -> list[int]:
        """Take back what nobody renewed, if contact is steady; without a contact, whatever has ended."""
        ...

    async def promote(self, limit: int = 500, now: datetime | None = None) -> Promoted:
        """Make due jobs claimable and say when the next one is due."""
        ...

    async def spawn(self, limit: int = 500, now: datetime | None = None) -> list[Enqueued]:
        """Let due templates enqueue their jobs."""
        ...

    async def age(self, limit: int = 500, now: datetime | None = None) -> int:
        """Raise the priority of jobs that have waited for long, in batches; returns how many."""
        ...

    async def age_some(self, cursor: str | None = None, *, at_most: int = 10_000, now: datetime | None = None) -> Swept:
        """Go on with a pass of aging from where the last part ended, for about `at_most` jobs."""
        ...

    async def cancel(self, ids: Sequence[int], reason: str | None = None, now: datetime | None = None) -> Moved:
        """Cancel jobs at once; a late success of a running one is refused."""
        ...

    async def stop_run(self, ids: Sequence[int], now: datetime | None = None) -> Moved:
        """Ask running recurring jobs to end this run."""
        ...

    async def pause(self, ids: Sequence[int], now: datetime | None = None) -> Moved:
        """Hold waiting jobs until they are resumed."""
        ...

    async def resume(self, ids: Sequence[int], now: datetime | None = None) -> Moved:
        """Let paused jobs go on; recurring ones count anew from now."""
        ...

    async def disable(self, ids: Sequence[int], now: datetime | None = None) -> Moved:
        """Stop jobs from running by themselves; a running one finishes its run first."""
        ...

    async def enable(self, ids: Sequence[int], now: datetime | None = None) -> Moved:
        """Undo `disable`, keeping the next time."""
        ...

    async def run_now(self, ids: Sequence[int], now: datetime | None = None) -> Moved:
        """Run waiting jobs now, running ones once more after their run."""
        ...

    async def retry(self, ids: Sequence[int], now: datetime | None = None) -> Moved:
        """Start failed jobs afresh; raises SlotTaken for a single one whose unique key is held."""
        ...

    async def boost(self, ids: Sequence[int], amount: int, now: datetime | None = None) -> Moved:
        """Raise the priority of jobs that are not over, up to 100."""
        ...

    async def set_priority(self, ids: Sequence[int], priority: int, now: datetime | None = None) -> Moved:
        """Give jobs that are not over a new priority, which is also the one they return to."""
        ...

    async def override_status(
        self, ids: Sequence[int], status: JobState, *, by: str, lease_length: timedelta, now: datetime | None = None
    ) -> Moved:
        """Put jobs into a state by hand, round the table of moves; raises SlotTaken for a single one whose key is held."""
        ...

    async def clone(self, ids: Sequence[int], created_by: str | None = None, now: datetime | None = None) -> Moved:
        """Make new jobs from finished ones; the answer has the new ones."""
        ...

    async def delete(self, ids: Sequence[int], now: datetime | None = None) -> Moved:
        """Remove jobs that nobody holds; the answer has them as they were."""
        ...

    async def bury(self, ids: Sequence[int], error: str, now: datetime | None = None) -> Moved:
        """Fail waiting jobs for good, each with a dead letter."""
        ...

    async def fail(self, ids: Sequence[int], error: str, *, will_retry: bool, now: datetime | None = None) -> Moved:
        """End runs as failed, by policy or for good; due jobs wait for their retry, others that wait fail only for good."""
        ...

    async def take_lease(self, ids: Sequence[int], now: datetime | None = None) -> Moved:
        """End leases as if nobody had renewed them."""
        ...

    async def bulk(
        self,
        verb: str,
        wanted: JobFilter,
        options: Mapping[str, Any] | None = None,
        *,
        ids: Sequence[int] | None = None,
        dry_run: bool = False,
        batch: int = 500,
        now: datetime | None = None,
    ) -> Bulk:
        """Do what a verb does, by its name and with its options, to every job a filter matches, or to those of some jobs."""
        ...

    @property
    def letters(self) -> Letters:
        """What operators do with dead letters."""
        ...

    async def edit(self, job_id: int, changes: Edit, now: datetime | None = None) -> Moved:
        """Change a job; only a new cadence moves its next run."""
        ...

    async def get(self, job_id: int) -> Job:
        """Read one job; raises JobNotFound."""
        ...

    async def get_many(self, ids: Sequence[int]) -> list[Job]:
        """Read jobs by number, in the order of their numbers; unknown ones are left out."""
        ...

    async def list_jobs(self, query: JobQuery | None = None) -> Page:
        """Read a page of jobs; without a query, the newest."""
        ...

    async def list_executions(
        self, job_id: int, *, before: int = 2**31 - 1, limit: int = 500, offset: int = 0
    ) -> list[Execution]:
        """Read a job's runs, the one that goes on first, then newest first."""
        ...

    async def get_execution(self, job_id: int, number: int) -> Execution:
        """Read one run; raises ExecutionNotFound."""
        ...

    async def count_executions(self, job_id: int) -> int:
        """Count a job's runs that are kept, with the one that goes on, without reading them."""
        ...

    async def list_by_correlation(self, correlation_id: str, *, after: int = 0) -> Related:
        """Read some jobs of one correlation after a number, oldest first; a job's own UUID means the job and its children."""
        ...

    async def list_tree(self, job_id: int) -> Tree:
        """Read a job's first ancestor and what came of it, level by level; nothing when there is no such job."""
        ...

    async def list_dead_letters(self, job_id: int) -> list[DeadLetter]:
        """Read a job's dead letters, oldest first."""
        ...

    async def count_jobs(self) -> list[Count]:
        """Count jobs by task, lane, state and reason, exactly and without reading them."""
        ...

    async def count_task(self, task: str) -> list[Count]:
        """Count a task's jobs by lane, state and reason; templates and what is paused or cancelled are left out."""
        ...

    async def fold_counts(self, limit: int = 10_000) -> int:
        """Fold count deltas; returns how many were folded."""
        ...
