"""What every job must look like: the rules over a dict, without a database."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple

from tests.model.gates import SPEC, Gates, Holder
from tests.model.verdict import MISSED_AFTER, PastRun, Verdict, backoff, caught_up, first_slot, judge, next_slot
from windlass.core.cadence import Misfire, Recurrence
from windlass.core.job import (
    CLOSED,
    WAITING,
    Claimed,
    Edit,
    Enqueued,
    Held,
    JobState,
    Lease,
    NewJob,
    OnConflict,
    Promoted,
    RunReason,
    RunStatus,
    UniqueScope,
    WaitReason,
)
from windlass.core.outcome import Failure, LeaseExpired, Outcome, Raised
from windlass.core.retention import Pruned, Retention
from windlass.core.retry import RetrySpec
from windlass.errors import DuplicateJob, InvalidInput, LeaseLost, SlotTaken

S = JobState
EPOCH = datetime.fromisoformat("1970-01-01T00:00:00+00:00")
MICROSECOND = timedelta(microseconds=1)
MILLISECOND = timedelta(milliseconds=1)
Slot = tuple[str, str | None]
Head = tuple[int, datetime, str | None]
"""Where a slice begins, and the breaker that it waits for."""


@dataclass
class Letter:
    """The record of a job that failed for good."""

    error: str
    first_died_at: datetime
    died_at: datetime
    deaths: int = 1
    acknowledged_at: datetime | None = None
    acknowledged_by: str | None = None
    note: str | None = None
    closed_at: datetime | None = None
    closed_reason: str | None = None


@dataclass(kw_only=True)
class Row:
    """A job; a field that `Job` has too must be equal there."""

    id: int
    task: str
    lane: str
    state: JobState
    wait_reason: WaitReason | None
    priority: int
    base_priority: int
    run_at: datetime
    slot_at: datetime | None
    max_attempts: int | None
    retry: str
    cadence: str | None
    spawn: bool
    name: str | None
    unique_key: str | None
    unique_scope: UniqueScope | None
    unique_slot: str | None
    child_key: str | None
    parent_id: int | None
    created_by: str | None
    created_at: datetime
    payload: str
    attempt: int = 0
    executions: int = 0
    crashes: int = 0
    consecutive_failures: int = 0
    completed_runs: int = 0
    token: int | None = None
    worker: str | None = None
    claimed_at: datetime | None = None
    lease_expires_at: datetime | None = None
    closed_at: datetime | None = None
    paused_at: datetime | None = None
    held: bool = False
    stop_requested: bool = False
    rerun_at: datetime | None = None
    rerun_slot_at: datetime | None = None
    last_error: str | None = None
    last_error_at: datetime | None = None
    last_cursor: str | None = None
    progress_message: str | None = None
    progress_count: int = 0
    result_count: int = 0
    target_count: int | None = None
    last_progress_at: datetime | None = None
    done_reason: str | None = None
    run_started_at: datetime | None = None
    """When the run under way started; `Job.started_at` says it only as long as the job runs."""
    pull_id: str | None = None
    runs: list[PastRun] = field(default_factory=list)
    letters: list[Letter] = field(default_factory=list)

    @property
    def recurrence(self) -> Recurrence | None:
        return None if self.cadence is None else Recurrence.decode(self.cadence)

    def claimed(self) -> Claimed:
        """Show the job as its worker sees it."""
        assert self.token is not None
        assert self.worker is not None
        assert self.claimed_at is not None
        assert self.lease_expires_at is not None
        return Claimed(
            id=self.id,
            task=self.task,
            lane=self.lane,
            payload=self.payload,
            priority=self.priority,
            run_at=self.run_at,
            slot_at=self.slot_at,
            attempt=self.attempt,
            max_attempts=self.max_attempts,
            execution=self.executions,
            crashes=self.crashes,
            consecutive_failures=self.consecutive_failures,
            completed_runs=self.completed_runs,
            retry=self.retry,
            cadence=self.cadence,
            timeout_us=None,
            token=self.token,
            worker=self.worker,
            claimed_at=self.claimed_at,
            lease_expires_at=self.lease_expires_at,
            subject=None,
            correlation_id=None,
            parent_id=self.parent_id,
            last_cursor=self.last_cursor,
            progress_count=self.progress_count,
            result_count=self.result_count,
            target_count=self.target_count,
        )


class Ending(NamedTuple):
    """What a worker says of a run, and when it decided to say it."""

    claim: Claimed
    outcome: Outcome
    started_at: datetime | None
    decided_at: datetime


class Progress(NamedTuple):
    """What a worker says of how far it has come."""

    id: int
    token: int
    done: int
    cursor: str | None


class Told(NamedTuple):
    """What a worker says of a cancelled run that has stopped."""

    id: int
    token: int
    started_at: datetime | None


class Moves(NamedTuple):
    """What an operator move did, in numbers."""

    changed: list[int]
    refused: list[int]
    missing: list[int]


class LetterAt(NamedTuple):
    """A dead letter: the how-manieth of which job."""

    job: int
    place: int


class Settles(NamedTuple):
    """What became of letters, and which jobs came back."""

    changed: list[LetterAt]
    refused: list[LetterAt]
    missing: list[LetterAt]
    jobs: list[int]


class Clones(NamedTuple):
    """The new jobs by the old ones they were made from."""

    made: dict[int, int]
    refused: list[int]
    missing: list[int]


class Model:
    """A store without a database."""

    def __init__(self) -> None:
        self.jobs: dict[int, Row] = {}
        self.gates = Gates()
        self.pruned_tokens: set[int] = set()

    def enqueue(self, new: Sequence[NewJob], now: datetime, numbers: Iterable[int]) -> list[Enqueued]:
        """Insert one after the other, all or none; SPEC leaves the order of numbers within a batch open, so they are given."""
        if self._is_rejected(new):
            raise DuplicateJob(new[0].task, "", 0)
        return [self._enqueue(job, now, number) for job, number in zip(new, numbers, strict=True)]

    def _is_rejected(self, new: Sequence[NewJob]) -> bool:
        met: set[tuple[str, str]] = set()
        for job in new:
            marks = {(kind, value) for kind, value in ((job.task, job.unique_key), ("", job.name)) if value is not None}
            if job.on_conflict is OnConflict.REJECT and (marks & met or self._holder_of(job) is not None):
                return True
            met |= marks
        return False

    def _enqueue(self, job: NewJob, now: datetime, number: int) -> Enqueued:
        holder = self._holder_of(job)
        if holder is None:
            self._insert(job, now, number)
            return Enqueued(number)
        if job.on_conflict is OnConflict.REPLACE and holder.state in WAITING:
            self._replace(holder, job, now)
        if job.on_conflict is OnConflict.RERUN and holder.state is S.RUNNING:
            holder.rerun_at = min(holder.rerun_at or now, now)
        return Enqueued(holder.id, is_duplicate=True)

    def _holder_of(self, job: NewJob) -> Row | None:
        for row in self.jobs.values():
            if job.name is not None and row.name == job.name:
                return row
            if job.unique_key is not None and (row.task, row.unique_slot) == (job.task, job.unique_key):
                return row
        return None

    def _insert(self, job: NewJob, now: datetime, number: int) -> None:
        assert number not in self.jobs
        due = _due(job, now)
        waits = WaitReason.DELAY if due > now else WaitReason.NEW
        self.jobs[number] = Row(
            id=number,
            task=job.task,
            lane=job.lane,
            state=S.SCHEDULED if job.spawn or due > now else S.PENDING,
            wait_reason=waits if job.recurrence is None else WaitReason.RECURRENCE,
            priority=job.priority,
            base_priority=job.priority,
            run_at=due,
            slot_at=None if job.recurrence is None else due,
            max_attempts=job.max_attempts,
            retry=job.retry.encode(),
            cadence=None if job.recurrence is None else job.recurrence.encode(),
            spawn=job.spawn,
            name=job.name,
            unique_key=job.unique_key,
            unique_scope=None if job.unique_key is None else job.unique_scope,
            unique_slot=job.unique_key,
            child_key=job.child_key,
            parent_id=job.parent_id,
            created_by=job.created_by,
            created_at=now,
            payload=job.payload,
            target_count=job.target_count,
        )

    def _replace(self, row: Row, job: NewJob, now: datetime) -> None:
        due = _due(job, now)
        row.payload, row.run_at = job.payload, due
        row.priority = row.base_priority = job.priority
        if row.cadence is None:
            row.wait_reason = WaitReason.DELAY if due > now else WaitReason.NEW
        else:
            row.slot_at = due
        if row.state is not S.PAUSED:
            row.state = S.SCHEDULED if row.spawn or due > now else S.PENDING

    def slices(self, now: datetime, *, is_suspect: bool) -> dict[tuple[str, str], Head]:
        """Every lane and task with pending work, or with suspects, that no gate holds back, and where its head stands."""
        found: dict[tuple[str, str], Head] = {}
        for row in self._pending(is_suspect=is_suspect):
            is_gated = self.gates.is_behind_a_breaker(row.task)
            if self.gates.lets_through(row.lane, row.task) and (not is_gated or self._is_probe_due(now)):
                found.setdefault((row.lane, row.task), (row.priority, row.run_at, SPEC.name if is_gated else None))
        return found

    def is_probe_alive(self, now: datetime) -> bool:
        """Whether the lease of the probe stands or, without a job, its time is not over."""
        switch = self.gates.switch
        if switch is None:
            return False
        if switch.probe.job is not None:
            row = self.jobs.get(switch.probe.job)
            return row is not None and row.token is not None and row.token == switch.probe.token
        return switch.half_opened_at is not None and switch.half_opened_at + SPEC.open_for > now

    def _is_probe_due(self, now: datetime) -> bool:
        return self.gates.is_due(now, is_alive=self.is_probe_alive(now))

    def record(self, holder: Holder, now: datetime, *, succeeded: bool, failures: int) -> str:
        """Tell the breaker of a result."""
        is_alive = self.is_probe_alive(now)
        return self.gates.record(holder, now, succeeded=succeeded, failures=failures, is_alive=is_alive)

    def admit(self, holder: Holder, now: datetime) -> tuple[bool, bool, datetime | None, int | None]:
        """Let a caller go ahead, as the probe where one is due; whoever is held back learns when to ask again."""
        switch = self.gates.switch
        if switch is None or switch.state == "closed":
            return True, False, None, None
        is_alive = self.is_probe_alive(now)
        if (
            switch.state == "half_open"
            and holder.token is not None
            and switch.probe == holder
            and (holder.job is None or is_alive)
        ):
            return True, True, None, holder.token
        if not self._is_probe_due(now):
            is_open = switch.state == "open" and switch.probe_at is not None
            return False, False, switch.probe_at if is_open else now + SPEC.open_for, None
        row = None if holder.job is None else self.jobs.get(holder.job)
        if holder.job is not None and (row is None or row.token != holder.token):
            raise LeaseLost(holder.job)
        self.gates.version += 1
        taken = holder if holder.job is not None else Holder(None, self.gates.version)
        switch.try_with(taken, now)
        return True, True, None, taken.token

    def claim_probe(
        self,
        version: int,
        slices: Sequence[tuple[str, str]],
        suspects: Sequence[tuple[str, str]],
        *,
        lease: Lease,
        now: datetime,
    ) -> Claimed | None:
        """Take one job with the permit, any other before the one of the last probe, and a suspect only if there is no other."""
        switch = self.gates.switch
        if switch is None or not self._is_probe_due(now) or version != self.gates.version:
            return None
        row = self._probe(slices, switch.last_probe, is_suspect=False)
        row = row or self._probe(suspects or slices, switch.last_probe, is_suspect=True)
        if row is None:
            return None
        _take(row, lease, now, started=True)
        self.gates.version += 1
        switch.try_with(Holder(row.id, row.token), now)
        return row.claimed()

    def _probe(self, slices: Sequence[tuple[str, str]], avoided: int | None, *, is_suspect: bool) -> Row | None:
        pending = self._pending(is_suspect=is_suspect)
        waiting = [row for part in slices for row in pending if (row.lane, row.task) == part]
        return next((row for row in waiting if row.id != avoided), next(iter(waiting), None))

    def _pending(self, *, is_suspect: bool | None = None) -> list[Row]:
        pending = [row for row in self.jobs.values() if row.state is S.PENDING and is_suspect in {None, row.crashes > 0}]
        return sorted(pending, key=lambda row: (-row.priority, row.run_at, row.id))

    def claim(
        self, version: int, slices: set[tuple[str, str]], limit: int, lease: Lease, *, started: bool, now: datetime
    ) -> list[Claimed]:
        """Take jobs in order, unless a gate has moved; suspects are left out."""
        if version != self.gates.version:
            return []
        rows = [row for row in self._pending(is_suspect=False) if (row.lane, row.task) in slices][:limit]
        for row in rows:
            _take(row, lease, now, started=started)
        return [row.claimed() for row in rows]

    def claim_first(
        self, version: int, slices: set[tuple[str, str]], lease: Lease, now: datetime, *, is_suspect: bool | None
    ) -> Claimed | None:
        """Take the first suspect, or the first of all jobs, and start it."""
        for row in self._pending(is_suspect=is_suspect):
            if version == self.gates.version and (row.lane, row.task) in slices:
                _take(row, lease, now, started=True)
                return row.claimed()
        return None

    def pull(
        self, version: int, slices: set[tuple[str, str]], lease: Lease, pull_id: str | None, *, now: datetime
    ) -> Claimed | None:
        """Give the lease that this worker already has under this name, or one job."""
        for row in self.jobs.values():
            if pull_id is None or (row.worker, row.pull_id) != (lease.worker, pull_id):
                continue
            if row.state is S.RUNNING:
                row.lease_expires_at = max(row.lease_expires_at or now, now + lease.length)
                return row.claimed()
            _let_go(row, None, now)
        job = self.claim_first(version, slices, lease, now, is_suspect=None)
        if job is not None:
            self.jobs[job.id].pull_id = pull_id
        return job

    def age(self, now: datetime) -> int:
        """Raise what has been due for more than an hour: ten, and ten for every five minutes more, up to a hundred."""
        raised = 0
        for row in self._pending():
            beyond = (now - row.run_at) // MICROSECOND - 3_600_000_000
            wanted = min(100, row.base_priority + 10 + beyond // 300_000_000 * 10)
            if beyond > 0 and wanted > row.priority:
                row.priority = wanted
                raised += 1
        return raised

    def prune(self, rules: Retention, now: datetime) -> Pruned:
        """Let go of old runs beyond the newest, then of jobs that were closed long ago; letters outlive these histories."""
        before = now - rules.keep
        runs = 0
        for row in self.jobs.values():
            newest = {run.number for run in row.runs[-rules.keep_executions :]}
            old = [run for run in row.runs if run.number not in newest and run.finished_at < before]
            row.runs = [run for run in row.runs if run not in old]
            self.pruned_tokens |= {run.token for run in old}
            runs += len(old)
        gone = [row.id for row in self.jobs.values() if row.closed_at is not None and row.closed_at < before and _may_go(row)]
        for number in gone:
            del self.jobs[number]
        return Pruned(runs, len(gone), 0)

    def renew(self, leases: Iterable[tuple[int, int, datetime | None]], length: timedelta, now: datetime) -> list[Held]:
        """Extend what is still held, expired or not; a cancelled run learns of it here."""
        held = []
        for number, token, started_at in leases:
            row = self.jobs.get(number)
            if row is None or row.token != token or row.lease_expires_at is None:
                continue
            row.lease_expires_at = max(row.lease_expires_at, now + length)
            is_cancelled = row.state is S.CANCELLED
            if not is_cancelled:
                row.run_started_at = row.run_started_at or started_at
            held.append(Held(number, token, row.stop_requested or is_cancelled, is_cancelled, row.lease_expires_at))
        return held

    def progress(self, step: Progress, now: datetime) -> None:
        """Note how far a run has come; who reports has started."""
        row = self.jobs.get(step.id)
        if row is None or row.token != step.token or row.state is not S.RUNNING:
            raise LeaseLost(step.id)
        row.progress_count, row.last_progress_at = step.done, now
        row.last_cursor = step.cursor or row.last_cursor
        row.run_started_at = row.run_started_at or now

    def finish(self, endings: Iterable[Ending], now: datetime) -> dict[int, JobState]:
        """End the runs that are still held; the rest is refused."""
        # Who held a key when the batch came keeps it to the end of the batch, even when its own run ends in it.
        taken: set[Slot] = {(row.task, row.unique_slot) for row in self.jobs.values() if row.unique_slot is not None}
        accepted: dict[int, JobState] = {}
        for ending in sorted(endings, key=lambda ending: ending.claim.id):
            row = self.jobs.get(ending.claim.id)
            if row is not None and row.state is S.RUNNING and row.token == ending.claim.token:
                self._end(row, ending, taken, now)
                accepted[row.id] = row.state
        return accepted

    def _end(self, row: Row, ending: Ending, taken: set[Slot], now: datetime) -> None:
        verdict = judge(ending.claim, ending.outcome, ending.decided_at, now)
        _record(row, ending, verdict, now)
        _charge(row, verdict, now)
        _settle(row, verdict, taken, now)
        _forget_run(row)
        if verdict.is_death and row.done_reason != "superseded":
            _bury(row, verdict.error or "no message", now)
        if verdict.status is RunStatus.COMPLETED and row.cadence is not None:
            _close_letters(row, "succeeded", now)

    def stop(self, told: Iterable[Told], now: datetime) -> list[int]:
        """Let go of cancelled runs; one that had started after all still leaves its execution."""
        stopped = []
        for number, token, started_at in told:
            row = self.jobs.get(number)
            if row is not None and row.token == token and row.state is S.CANCELLED:
                _let_go(row, started_at, now)
                stopped.append(number)
        return stopped

    def reclaim(self, limit: int, now: datetime) -> list[int]:
        """Take back what nobody renewed."""
        lapsed = [row for row in self.jobs.values() if row.lease_expires_at is not None and row.lease_expires_at <= now]
        lapsed = sorted(lapsed, key=lambda row: row.id)[:limit]
        self._end_leases(lapsed, now)
        return [row.id for row in lapsed]

    def _end_leases(self, rows: Sequence[Row], now: datetime) -> None:
        endings = [
            Ending(row.claimed(), LeaseExpired(row.run_started_at is not None, row.stop_requested), row.run_started_at, now)
            for row in rows
            if row.state is S.RUNNING
        ]
        cancelled = [Told(row.id, row.token or 0, None) for row in rows if row.state is S.CANCELLED]
        self.finish(endings, now)
        self.stop(cancelled, now)

    def promote(self, limit: int, now: datetime) -> Promoted:
        """Make due jobs pending, and send what was missed where its rule says; say when the next is due."""
        promoted = self._promote_due(limit, now)
        missed = self._missed(now)
        if missed:
            promoted += sum(self._catch_up(self.jobs[number], now) for _, number in missed[:limit])
            promoted += self._promote_due(limit, now)
        waiting = [row for row in self.jobs.values() if row.state is S.SCHEDULED]
        next_at = min((row.run_at for row in waiting if row.run_at > now), default=None)
        has_templates = any(row.spawn and row.run_at <= now for row in waiting)
        has_pending = any(row.state is S.PENDING for row in self.jobs.values())
        unleased_at = None if any(row.token is not None for row in self.jobs.values()) else now
        return Promoted(promoted, next_at, has_templates, bool(self._missed(now)), has_pending, unleased_at)

    def _missed(self, now: datetime) -> list[tuple[datetime, int]]:
        return sorted((row.run_at, row.id) for row in self.jobs.values() if _is_missed(row, now))

    def _promote_due(self, limit: int, now: datetime) -> int:
        due = sorted(
            (row.run_at, row.id)
            for row in self.jobs.values()
            if row.state is S.SCHEDULED and row.run_at <= now and not row.spawn and not _is_missed(row, now)
        )[:limit]
        for _, number in due:
            self.jobs[number].state = S.PENDING
        return len(due)

    def _catch_up(self, row: Row, now: datetime) -> bool:
        rule = row.recurrence
        assert rule is not None
        assert row.slot_at is not None
        slot_at = caught_up(rule, row.slot_at, now)
        if slot_at != row.slot_at and rule.has_ended(slot_at, row.completed_runs):
            _close(row, S.CANCELLED, now, "ended")
            return False
        row.run_at = row.slot_at = slot_at
        row.priority = row.base_priority
        row.state = S.SCHEDULED if slot_at > now else S.PENDING
        return row.state is S.PENDING

    def spawn(self, limit: int, now: datetime, numbers: Iterable[int]) -> list[Enqueued]:
        """Let due templates enqueue their jobs and move on, counted from their slot."""
        due = [row for row in self.jobs.values() if row.state is S.SCHEDULED and row.spawn and row.run_at <= now]
        due = sorted(due, key=lambda row: (row.run_at, row.id))[:limit]
        left = iter(numbers)
        spawned = [self._spawn(row, now, left) for row in due]
        return [child for child in spawned if child is not None]

    def _spawn(self, row: Row, now: datetime, numbers: Iterator[int]) -> Enqueued | None:
        rule = row.recurrence
        assert rule is not None
        assert row.slot_at is not None
        is_late = row.wait_reason is WaitReason.RECURRENCE and now - row.run_at > MISSED_AFTER
        if is_late and rule.misfire is Misfire.ALL:
            row.slot_at = caught_up(rule, row.slot_at, now, is_fixed=True)
        child = _child(row)
        is_served = not (is_late and rule.misfire is Misfire.SKIP)
        row.completed_runs += is_served
        if is_served:
            next_at = next_slot(rule, row.slot_at, now, claimed_at=now, is_fixed=True)
        else:
            next_at = caught_up(rule, row.slot_at, now, is_fixed=True)
        if rule.has_ended(next_at, row.completed_runs):
            _close(row, S.CANCELLED, now, "ended")
        else:
            row.run_at = row.slot_at = next_at
            row.wait_reason = WaitReason.RECURRENCE
            if row.held:
                row.state, row.paused_at, row.held = S.PAUSED, now, False
        return self._enqueue(child, now, next(numbers)) if is_served else None

    def _move(self, ids: Sequence[int], changed: Iterable[Row]) -> Moves:
        moved = sorted(row.id for row in changed)
        known = sorted(number for number in ids if number in self.jobs)
        return Moves(moved, [n for n in known if n not in moved], [n for n in ids if n not in self.jobs])

    def _known(self, ids: Sequence[int], *states: JobState) -> list[Row]:
        return [self.jobs[number] for number in sorted(ids) if number in self.jobs and self.jobs[number].state in states]

    def cancel(self, ids: Sequence[int], now: datetime) -> Moves:
        """Cancel at once; a run keeps its lease and its key until it has stopped."""
        rows = self._known(ids, *WAITING, S.RUNNING)
        for row in rows:
            if row.state is S.RUNNING and row.run_started_at is not None:
                _add_run(row, row.run_started_at, now, Verdict(row.state, status=RunStatus.CANCELLED, reason=RunReason.CANCELLED))
            elif row.state is S.RUNNING:
                row.attempt -= 1
                row.executions -= 1
            _close(row, S.CANCELLED, now, "cancelled", keeps_slot=row.state is S.RUNNING)
        return self._move(ids, rows)

    def stop_run(self, ids: Sequence[int], _now: datetime) -> Moves:
        """Mark the runs of recurring jobs."""
        rows = [row for row in self._known(ids, S.RUNNING) if row.cadence is not None]
        for row in rows:
            row.stop_requested = True
        return self._move(ids, rows)

    def pause(self, ids: Sequence[int], now: datetime) -> Moves:
        """Hold what waits; a pending job only when it is recurring."""
        rows = [row for row in self._known(ids, S.SCHEDULED, S.PENDING) if row.state is S.SCHEDULED or row.cadence is not None]
        for row in rows:
            row.state, row.paused_at, row.held = S.PAUSED, now, False
        return self._move(ids, rows)

    def resume(self, ids: Sequence[int], now: datetime) -> Moves:
        """Let paused jobs go on; recurring ones count anew from now."""
        rows = self._known(ids, S.PAUSED)
        for row in rows:
            row.state, row.paused_at = S.SCHEDULED, None
            if row.recurrence is not None:
                row.run_at = row.slot_at = first_slot(row.recurrence, now)
                row.wait_reason, row.attempt = WaitReason.RECURRENCE, 0
        return self._move(ids, rows)

    def disable(self, ids: Sequence[int], now: datetime) -> Moves:
        """Pause what waits, hold what runs."""
        rows = self._known(ids, *WAITING, S.RUNNING)
        rows = [row for row in rows if row.state is not S.PENDING or row.cadence is not None]
        for row in rows:
            row.held = row.state is S.RUNNING
            if row.state is not S.RUNNING:
                row.state, row.paused_at = S.PAUSED, row.paused_at or now
        return self._move(ids, rows)

    def enable(self, ids: Sequence[int], _now: datetime) -> Moves:
        """Undo `disable`; the next time stays."""
        rows = self._known(ids, *WAITING, S.RUNNING)
        for row in rows:
            row.state = S.SCHEDULED if row.state is S.PAUSED else row.state
            row.held, row.paused_at = False, None
        return self._move(ids, rows)

    def run_now(self, ids: Sequence[int], now: datetime) -> Moves:
        """Run what waits now, and what runs once more."""
        rows = self._known(ids, *WAITING, S.RUNNING)
        for row in rows:
            if row.state is S.RUNNING:
                row.rerun_at = now
                continue
            row.held = row.held or row.state is S.PAUSED
            row.state = S.SCHEDULED if row.state is S.PAUSED or row.spawn else S.PENDING
            row.wait_reason, row.run_at, row.paused_at = WaitReason.OPERATOR, min(row.run_at, now), None
        return self._move(ids, rows)

    def retry(self, ids: Sequence[int], now: datetime) -> Moves:
        """Start failed jobs afresh, one for each key, and none into a slot that another holds."""
        rows = []
        for row in self._known(ids, S.FAILED, S.SCHEDULED):
            if row.state is S.SCHEDULED and row.wait_reason not in {WaitReason.RETRY, WaitReason.LOST}:
                continue
            holder = self._rival(row)
            if holder is not None and len(ids) == 1:
                raise SlotTaken(row.id, holder.id)
            if holder is None:
                _restart(row, now)
                rows.append(row)
        return self._move(ids, rows)

    def boost(self, ids: Sequence[int], now: datetime, amount: int) -> Moves:  # noqa: ARG002 - as every move
        """Raise both priorities up to a hundred; what is higher stays."""
        rows = self._known(ids, *WAITING, S.RUNNING, S.FAILED)
        for row in rows:
            row.priority = max(row.priority, min(100, row.priority + amount))
            row.base_priority = max(row.base_priority, min(100, row.base_priority + amount))
        return self._move(ids, rows)

    def set_priority(self, ids: Sequence[int], now: datetime, priority: int) -> Moves:  # noqa: ARG002 - as every move
        """Set both priorities."""
        rows = self._known(ids, *WAITING, S.RUNNING, S.FAILED)
        for row in rows:
            row.priority = row.base_priority = priority
        return self._move(ids, rows)

    def delete(self, ids: Sequence[int], _now: datetime) -> Moves:
        """Remove what nobody holds."""
        rows = [row for row in self._known(ids, *JobState) if row.token is None]
        moves = self._move(ids, rows)
        for row in rows:
            del self.jobs[row.id]
        return moves

    def bury(self, ids: Sequence[int], now: datetime, error: str) -> Moves:
        """Fail what waits, with a letter."""
        rows = self._known(ids, S.PENDING, S.SCHEDULED)
        for row in rows:
            _close(row, S.FAILED, now, "buried")
            row.last_error, row.last_error_at = error, now
            _bury(row, error, now)
        return self._move(ids, rows)

    def fail(self, ids: Sequence[int], now: datetime, error: str, *, will_retry: bool) -> Moves:
        """End runs as failed; what waits is buried, or if it is due and shall come back, waits for its retry."""
        rows = self._known(ids, S.RUNNING)
        outcome = Raised(Failure(error), is_final=not will_retry)
        self.finish([Ending(row.claimed(), outcome, row.run_started_at, now) for row in rows], now)
        failed = [row.id for row in rows]
        waiting = [number for number in ids if number not in failed]
        if not will_retry:
            failed += self.bury(waiting, now, error).changed
        else:
            due = self._known(waiting, S.PENDING)
            for row in due:
                row.state, row.wait_reason, row.priority = S.SCHEDULED, WaitReason.RETRY, row.base_priority
                row.run_at = now + backoff(row.retry, row.attempt)
                row.last_error, row.last_error_at = error, now
            failed += [row.id for row in due]
        return self._move(ids, [self.jobs[number] for number in failed])

    def take_lease(self, ids: Sequence[int], now: datetime) -> Moves:
        """End leases as if they had lapsed."""
        rows = [row for row in self._known(ids, *JobState) if row.token is not None]
        self._end_leases(rows, now)
        return self._move(ids, rows)

    def override_status(self, ids: Sequence[int], now: datetime, status: JobState, lease: Lease) -> Moves:
        """Put jobs into a state, round the table."""
        rows = []
        for row in self._known(ids, *JobState):
            if row.spawn and status in {S.PENDING, S.RUNNING}:
                continue
            takes_key = status is S.PENDING or (status is S.RUNNING and row.unique_scope is not UniqueScope.PENDING)
            holder = self._rival(row) if takes_key else None
            if holder is not None and len(ids) == 1:
                raise SlotTaken(row.id, holder.id)
            if holder is None:
                _override(row, status, lease, now)
                rows.append(row)
        return self._move(ids, rows)

    def clone(self, ids: Sequence[int], now: datetime, numbers: dict[int, int]) -> Clones:
        """Enqueue finished jobs once more; the new numbers are given by the number of the old job."""
        made: dict[int, int] = {}
        for row in self._known(ids, *CLOSED):
            new = self._enqueue(_copy(row, now), now, numbers.get(row.id, -row.id))
            if not new.is_duplicate:
                made[row.id] = new.id
            elif len(ids) == 1:
                raise SlotTaken(row.id, new.id)
        known = sorted(number for number in ids if number in self.jobs)
        return Clones(made, [n for n in known if n not in made], [n for n in ids if n not in self.jobs])

    def acknowledge(self, letters: Sequence[LetterAt], now: datetime, by: str) -> Settles:
        """Note who has seen letters, once."""
        changed = []
        for place in letters:
            letter = self._letter(place)
            if letter is not None and letter.acknowledged_at is None:
                letter.acknowledged_at, letter.acknowledged_by, letter.note = now, by, "seen"
                changed.append(place)
        return self._settled(letters, changed, set())

    def requeue(self, letters: Sequence[LetterAt], now: datetime) -> Settles:
        """Bring back the jobs of open letters: failed ones afresh, schedules that went on now."""
        standing = [place for place in letters if (found := self._letter(place)) is not None and found.closed_at is None]
        numbers = sorted({place.job for place in standing})
        failed = [number for number in numbers if self.jobs[number].state is S.FAILED]
        back: set[int] = set()
        for row in (self.jobs[number] for number in failed):
            holder = self._rival(row)
            if holder is not None and len(letters) == 1:
                raise SlotTaken(row.id, holder.id)
            if holder is None:
                _restart(row, now, "requeued")
                back.add(row.id)
        schedules = [n for n in numbers if n not in failed and self.jobs[n].cadence is not None]
        back |= set(self.run_now(schedules, now).changed)
        for number in back:
            _close_letters(self.jobs[number], "requeued", now)
        return self._settled(letters, [place for place in standing if place.job in back], back)

    def _letter(self, place: LetterAt) -> Letter | None:
        row = self.jobs.get(place.job)
        return None if row is None else row.letters[place.place]

    def _settled(self, letters: Sequence[LetterAt], changed: Sequence[LetterAt], back: set[int]) -> Settles:
        known = [place for place in letters if place.job in self.jobs]
        return Settles(
            sorted(changed),
            sorted(place for place in known if place not in changed),
            [place for place in letters if place not in known],
            sorted(back),
        )

    def _rival(self, row: Row) -> Row | None:
        slot = (row.task, row.unique_key)
        rivals = (other for other in self.jobs.values() if other is not row and (other.task, other.unique_slot) == slot)
        return None if row.unique_key is None else next(rivals, None)

    def edit(self, number: int, changes: Edit) -> Moves:
        """Change a job; only a new cadence moves its next run."""
        row = self.jobs.get(number)
        if row is None:
            return Moves([], [], [number])
        if row.state in {S.COMPLETED, S.CANCELLED}:
            return Moves([], [number], [])
        if changes.recurrence is not None and row.cadence is None:
            raise InvalidInput("cadence", number, "not recurring")
        lowered = changes.max_attempts is not None and (row.max_attempts is None or changes.max_attempts < row.max_attempts)
        if lowered and row.state is not S.FAILED and (changes.max_attempts or 0) <= row.attempt:
            raise InvalidInput("max_attempts", number, "already used")
        row.payload = changes.payload or row.payload
        row.max_attempts = changes.max_attempts or row.max_attempts
        if changes.priority is not None:
            row.priority = row.base_priority = changes.priority
        if changes.recurrence is not None and changes.next_at is not None:
            _move_cadence(row, changes.recurrence, changes.next_at)
        return Moves([number], [], [])

    def counts(self) -> Counter[tuple[str, str, JobState, WaitReason | None]]:
        """Count jobs by what they are."""
        return Counter((row.task, row.lane, row.state, row.wait_reason) for row in self.jobs.values())


def _take(row: Row, lease: Lease, now: datetime, *, started: bool) -> None:
    row.state, row.wait_reason = S.RUNNING, None
    row.attempt += 1
    row.executions += 1
    row.token, row.worker, row.claimed_at, row.lease_expires_at = lease.token, lease.worker, now, now + lease.length
    row.run_started_at = now if started else None
    if row.unique_scope is UniqueScope.PENDING:
        row.unique_slot = None


def _may_go(row: Row) -> bool:
    """Whether nothing keeps a closed job: no schedule, no lease, no key for ever, no letter that nobody has dealt with."""
    has_open_letter = any(letter.closed_at is None and letter.acknowledged_at is None for letter in row.letters)
    is_kept = row.cadence is not None or row.token is not None or row.unique_scope is UniqueScope.FOREVER
    return not is_kept and not has_open_letter


def _due(job: NewJob, now: datetime) -> datetime:
    return job.run_at or now + (job.delay or timedelta(0))


def _child(row: Row) -> NewJob:
    is_planned = row.wait_reason is WaitReason.RECURRENCE
    slot = (row.slot_at if is_planned and row.slot_at is not None else row.run_at) - EPOCH
    return NewJob(
        task=row.task,
        lane=row.lane,
        payload=row.payload,
        priority=row.base_priority,
        max_attempts=row.max_attempts,
        retry=RetrySpec.decode(row.retry),
        unique_key=row.child_key or f"{row.id}@{slot // MICROSECOND}",
        parent_id=row.id,
        created_by=f"scheduler:{row.name or row.id}",
        target_count=row.target_count,
    )


def _add_run(row: Row, started_at: datetime, ended_at: datetime, verdict: Verdict) -> None:
    """Write the execution under the number and attempt that the claim reserved."""
    assert row.token is not None
    assert row.worker is not None
    row.runs.append(
        PastRun(
            number=row.executions,
            attempt=row.attempt,
            token=row.token,
            slot_at=row.slot_at,
            worker=row.worker,
            started_at=started_at,
            finished_at=max(ended_at, started_at),
            wait_ms=max(0, (started_at - row.run_at) // MILLISECOND),
            status=verdict.status,
            reason=verdict.reason,
            error=verdict.error,
        )
    )


def _record(row: Row, ending: Ending, verdict: Verdict, now: datetime) -> None:
    if verdict.status is not None:
        is_lost = isinstance(ending.outcome, LeaseExpired)
        started_at = ending.started_at or row.run_started_at or row.claimed_at or now
        _add_run(row, started_at, now if is_lost else ending.decided_at, verdict)


def _charge(row: Row, verdict: Verdict, now: datetime) -> None:
    """Count the run, and give back what it did not use."""
    row.attempt = 0 if verdict.is_fresh else row.attempt - (not verdict.is_charged)
    row.executions -= verdict.status is None
    is_trusted = verdict.status is not None and verdict.reason not in {RunReason.WORKER_CRASHED, RunReason.RELEASED}
    row.crashes = row.crashes + 1 if verdict.is_crash else 0 if is_trusted else row.crashes
    if verdict.status is RunStatus.COMPLETED:
        row.completed_runs += 1
        row.consecutive_failures, row.last_error, row.last_error_at = 0, None, None
    if verdict.status is RunStatus.FAILED:
        row.consecutive_failures += 1
        row.last_error, row.last_error_at = verdict.error, now


def _settle(row: Row, verdict: Verdict, taken: set[Slot], now: datetime) -> None:
    """Merge what operators did meanwhile: cancelled > failed > held > run again > retry > next slot."""
    final = verdict.state
    if final not in {S.FAILED, S.CANCELLED} and (row.rerun_at is not None or final is S.SCHEDULED):
        final = S.PAUSED if row.held else S.SCHEDULED
    if final not in WAITING:
        _close(row, final, now, verdict.done_reason)
        return
    if row.unique_scope is UniqueScope.PENDING:
        if (row.task, row.unique_key) in taken:
            _close(row, S.CANCELLED, now, "superseded")
            return
        taken.add((row.task, row.unique_key))
    row.unique_slot = row.unique_key
    _wait(row, verdict)
    row.state, row.paused_at = final, now if final is S.PAUSED else None


def _wait(row: Row, verdict: Verdict) -> None:
    row.priority = row.base_priority
    if row.rerun_at is None:
        row.wait_reason, row.run_at = verdict.wait_reason, verdict.run_at or row.run_at
    else:
        row.wait_reason = WaitReason.OPERATOR if row.rerun_slot_at is None else WaitReason.RECURRENCE
        row.run_at = row.rerun_at
    row.slot_at = row.rerun_slot_at or verdict.slot_at or row.slot_at
    if verdict.status is RunStatus.COMPLETED:
        row.attempt, row.progress_count, row.last_cursor, row.progress_message = 0, 0, None, None
        row.result_count = 0


def _close(row: Row, state: JobState, now: datetime, why: str | None, *, keeps_slot: bool = False) -> None:
    row.state, row.wait_reason, row.closed_at, row.paused_at, row.done_reason = state, None, now, None, why
    row.held, row.stop_requested, row.rerun_at, row.rerun_slot_at = False, False, None, None
    assert state in CLOSED
    if row.unique_scope is not UniqueScope.FOREVER and not keeps_slot:
        row.unique_slot = None


def _forget_run(row: Row) -> None:
    row.token, row.worker, row.lease_expires_at, row.run_started_at, row.pull_id = None, None, None, None, None
    row.held, row.stop_requested, row.rerun_at, row.rerun_slot_at = False, False, None, None


def _let_go(row: Row, told_at: datetime | None, now: datetime) -> None:
    started_at = row.run_started_at or told_at
    known = [run for run in row.runs if run.token == row.token]
    if started_at is not None and not known:
        row.attempt += 1
        row.executions += 1
        verdict = Verdict(S.CANCELLED, status=RunStatus.CANCELLED, reason=RunReason.CANCELLED)
        _add_run(row, started_at, row.closed_at or now, verdict)
    for run in [run for run in row.runs if run.token == row.token]:
        run.stopped_at = now
    _forget_run(row)
    if row.unique_scope is not UniqueScope.FOREVER:
        row.unique_slot = None


def _bury(row: Row, error: str, now: datetime) -> None:
    """One open letter for each job, updated by later deaths."""
    for letter in row.letters:
        if letter.closed_at is None and letter.acknowledged_at is None:
            letter.error, letter.died_at, letter.deaths = error, now, letter.deaths + 1
            return
    row.letters.append(Letter(error, now, now))


def _close_letters(row: Row, why: str, now: datetime) -> None:
    for letter in row.letters:
        if letter.closed_at is None:
            letter.closed_at, letter.closed_reason = now, why


def _restart(row: Row, now: datetime, why: str = "retried") -> None:
    row.state = S.SCHEDULED if row.spawn else S.PENDING
    row.wait_reason, row.run_at, row.closed_at, row.done_reason = WaitReason.OPERATOR, now, None, None
    row.attempt, row.crashes, row.priority, row.unique_slot = 0, 0, row.base_priority, row.unique_key
    _close_letters(row, why, now)


def _override(row: Row, status: JobState, lease: Lease, now: datetime) -> None:
    was, started_at = row.state, row.run_started_at
    is_held = row.held and status in {S.PENDING, S.RUNNING}
    attempt = _attempt_after(row, status)
    if was is S.RUNNING and started_at is not None:
        _add_run(row, started_at, now, Verdict(was, status=RunStatus.CANCELLED, reason=RunReason.STOPPED))
    elif was is S.RUNNING:
        row.executions -= 1
    if was is S.FAILED and status is not S.FAILED:
        _close_letters(row, "overridden", now)
    _forget_run(row)
    row.attempt, row.paused_at, row.closed_at = attempt, None, None
    if status in CLOSED:
        _close(row, status, now, "overridden")
        if status is S.COMPLETED:
            row.last_error, row.last_error_at = None, None
        return
    row.state, row.held, row.done_reason = status, is_held, None
    row.unique_slot = row.unique_key
    if status is S.PENDING:
        row.wait_reason, row.run_at, row.crashes, row.priority = WaitReason.OPERATOR, now, 0, row.base_priority
        return
    row.wait_reason, row.executions, row.run_started_at = None, row.executions + 1, now
    row.token, row.worker, row.claimed_at, row.lease_expires_at = lease.token, lease.worker, now, now + lease.length
    if row.unique_scope is UniqueScope.PENDING:
        row.unique_slot = None


def _attempt_after(row: Row, status: JobState) -> int:
    """Count what an override leaves: nothing for a fresh start, and a revoked run is not held against the next one."""
    if status is S.PENDING:
        return 0
    if status is S.RUNNING:
        return 1 if row.state in CLOSED else row.attempt + (row.state is not S.RUNNING)
    return row.attempt - (row.state is S.RUNNING and row.run_started_at is None)


def _is_missed(row: Row, now: datetime) -> bool:
    """Whether a rule has a say in what becomes of a job that is late."""
    if row.spawn or row.wait_reason is not WaitReason.RECURRENCE or now - row.run_at <= MISSED_AFTER:
        return False
    misfire = Misfire.ONCE if row.recurrence is None else row.recurrence.misfire
    return misfire is Misfire.SKIP or (misfire is Misfire.ALL and row.state is S.SCHEDULED)


def _copy(row: Row, now: datetime) -> NewJob:
    rule = row.recurrence
    return NewJob(
        task=row.task,
        lane=row.lane,
        payload=row.payload,
        priority=row.base_priority,
        max_attempts=row.max_attempts,
        retry=RetrySpec.decode(row.retry),
        recurrence=rule,
        run_at=None if rule is None else first_slot(rule, now),
        spawn=row.spawn,
        unique_key=row.unique_key,
        unique_scope=row.unique_scope or UniqueScope.ACTIVE,
        child_key=row.child_key,
        parent_id=row.id,
        created_by=row.created_by,
        target_count=row.target_count,
    )


def _move_cadence(row: Row, rule: Recurrence, next_at: datetime) -> None:
    row.cadence = rule.encode()
    if row.state is S.RUNNING:
        row.rerun_at, row.rerun_slot_at = min(row.rerun_at or next_at, next_at), next_at
    elif row.state in WAITING:
        row.run_at = row.slot_at = next_at
        row.wait_reason, row.attempt = WaitReason.RECURRENCE, 0
        row.state = S.SCHEDULED if row.state is S.PENDING else row.state
