"""The decision about a run's end: an outcome in, one Finish out."""

from __future__ import annotations

import hashlib
import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple, Protocol

from windlass.core.cadence import EPOCH, ByHandler, OnExhausted, Recurrence
from windlass.core.durations import MAX
from windlass.core.job import Claimed, JobState, RunReason, RunStatus, WaitReason
from windlass.core.payload import sanitise_text
from windlass.core.retry import PROFILES, Profile, RetryPolicy, RetrySpec
from windlass.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Mapping
    from random import Random

ERROR_LIMIT = 4_000
TRACE_LIMIT = 32_768
MAX_RESULT = 262_144


class Failure(NamedTuple):
    """The error of a run, as texts."""

    message: str
    kind: str = "Error"
    trace: str | None = None
    reason: RunReason = RunReason.ERROR


class Returned(NamedTuple):
    """The handler came back; `result` is JSON text."""

    result: str | None = None
    run_again_at: datetime | None = None
    done_reason: str | None = None


class Raised(NamedTuple):
    """The handler failed, timed out or took its process with it; `is_final` means no retry helps."""

    failure: Failure
    after: timedelta | None = None
    is_final: bool = False


class Snoozed(NamedTuple):
    """The handler asked to run later without using up an attempt."""

    delay: timedelta


class Cancelled(NamedTuple):
    """The handler cancelled its own job."""

    reason: str = "cancelled"


class Released(NamedTuple):
    """A worker gives the job back, run or not."""

    has_started: bool = False


class Stopped(NamedTuple):
    """The run was stopped because an operator asked; a recurring job goes on with its next slot."""

    has_started: bool = True


class LeaseExpired(NamedTuple):
    """The lease was not renewed."""

    has_started: bool
    is_stopping: bool = False


Outcome = Returned | Raised | Snoozed | Cancelled | Released | Stopped | LeaseExpired


class Run(NamedTuple):
    """What the worker measured of a run; instants are database time."""

    started_at: datetime | None = None
    finished_at: datetime | None = None
    log_excerpt: str | None = None
    cpu_time_ms: int | None = None
    memory_peak_mb: int | None = None
    items_crawled: int | None = None
    items_indexed: int | None = None
    metadata: str | None = None

    @property
    def is_bare(self) -> bool:
        """Whether there is nothing but times."""
        return self[2:] == _BARE


_BARE = (None,) * 6
NO_RUN = Run()


class Finish(NamedTuple):
    """One decided ending. `status` None means the run never started and leaves no execution.

    `run_at` is an instant, `delay` counts from the moment the statement runs; neither given keeps the old due time.
    """

    id: int
    token: int
    state: JobState
    attempt: int
    executions: int
    crashes: int
    consecutive_failures: int
    completed_runs: int
    wait_reason: WaitReason | None = None
    run_at: datetime | None = None
    delay: timedelta | None = None
    slot_at: datetime | None = None
    status: RunStatus | None = None
    reason: RunReason | None = None
    failure: Failure | None = None
    fingerprint: str | None = None
    result: str | None = None
    done_reason: str | None = None
    run: Run = NO_RUN

    def decided(self) -> Finish:
        """Return the decision, as it is."""
        return self

    def stripped(self) -> Finish:
        """Keep the decision and drop all content: what the database refused was content."""
        failure = self.failure and Failure(ascii_only(self.failure.message), "Error", None, self.failure.reason)
        run = Run(self.run.started_at, self.run.finished_at)
        return self._replace(result=None, run=run, failure=failure, done_reason=None)

    def buried(self, why: str) -> Finish:
        """Fail the job with the least record there is: even the stripped decision was refused."""
        failure = Failure(f"the database refused the finish record: {ascii_only(why)}"[:500])
        return self._replace(
            state=JobState.FAILED,
            attempt=max(self.attempt, 0) + (self.status is None),
            # The execution it writes stands under the claimed number, which an unstarted run had given back.
            executions=self.executions + (self.status is None),
            completed_runs=max(self.completed_runs - (self.status is RunStatus.COMPLETED), 0),
            wait_reason=None,
            run_at=None,
            delay=None,
            slot_at=None,
            status=RunStatus.FAILED,
            reason=RunReason.ERROR,
            failure=failure,
            fingerprint="refused",
            result=None,
            done_reason=None,
            run=NO_RUN,
        )


class Completed(NamedTuple):
    """The end of a run that came back with nothing to decide: its job has no rule, and nothing was measured but times.

    Most ends are of this kind. Instants are microseconds since the epoch, in database time.
    """

    id: int
    token: int
    job: Claimed
    started_us: int
    finished_us: int
    cpu_time_ms: int | None = None
    result: str | None = None

    @property
    def state(self) -> JobState:
        """The state it leaves the job in, unless an operator has asked for a further run meanwhile."""
        return JobState.COMPLETED

    def decided(self) -> Finish:
        """Write it out as any other end."""
        started_at, finished_at = (EPOCH + timedelta(microseconds=at_us) for at_us in (self.started_us, self.finished_us))
        return _completed(self.job, Returned(self.result), Run(started_at, finished_at, cpu_time_ms=self.cpu_time_ms))


Ending = Finish | Completed


def ascii_only(text: str) -> str:
    """Reduce a text to what every database takes."""
    return text.encode("ascii", "replace").replace(b"\0", b"?").decode()[:ERROR_LIMIT]


class Decide(Protocol):
    """Decides how a run ends its job: `decide`, or a worker without a database that leaves it to the server."""

    def __call__(
        self,
        job: Claimed,
        outcome: Outcome,
        run: Run = NO_RUN,
        *,
        now: datetime,
        rng: Random,
        profiles: Mapping[str, Profile] = PROFILES,
    ) -> Finish:
        """Return it; `now` is database time."""
        ...


def decide(
    job: Claimed,
    outcome: Outcome,
    run: Run = NO_RUN,
    *,
    now: datetime,
    rng: Random,
    profiles: Mapping[str, Profile] = PROFILES,
) -> Finish:
    """Decide how a run ends its job; `now` is database time.

    Never raises: a row whose stored rules cannot be read fails for good with that as its error, and holds up no other.
    """
    try:
        return _decide(job, outcome, run, _Case(now, rng, profiles))
    except InvalidInput as error:
        failure = bounded(Failure(f"the job's stored rules cannot be read: {error}", "InvalidInput"))
        ended = _ended(job, JobState.FAILED, run, status=RunStatus.FAILED, reason=RunReason.ERROR)
        return ended._replace(failure=failure, fingerprint=fingerprint(job.task, failure))


def _decide(job: Claimed, outcome: Outcome, run: Run, case: _Case) -> Finish:  # noqa: C901, PLR0911 - a case for each outcome
    match outcome:
        case Returned():
            return _returned(job, outcome, run, case)
        case Raised(failure, after, is_final):
            return _failed(job, failure, run, case._replace(after=after, is_final=is_final))
        case Snoozed(delay):
            return _waiting(job, WaitReason.SNOOZE, run, RunReason.SNOOZED)._replace(delay=_kept(delay))
        case Released(has_started=True):
            # Nothing is known of a run that was broken off, so a suspect stays one.
            return _waiting(job, WaitReason.RELEASED, run, RunReason.RELEASED)._replace(crashes=job.crashes)
        case Released():
            return _unstarted(job, WaitReason.RELEASED)
        case Cancelled(reason):
            return _cancelled(job, reason, run)
        case Stopped(has_started):
            return _stopped(job, run, case, has_started=has_started)
        case LeaseExpired(has_started, is_stopping=True):
            return _stopped(job, run, case, has_started=has_started)._replace(crashes=job.crashes + 1)
        case LeaseExpired(has_started=True):
            failure = Failure(f"worker {job.worker} stopped renewing its lease", "LeaseExpired", reason=RunReason.LEASE_EXPIRED)
            return _failed(job, failure, run, case)
        case LeaseExpired():
            # Behind those that had begun and were lost with it: they were claimed first, and all run again one by one.
            return _unstarted(job, WaitReason.LOST)._replace(crashes=job.crashes + 1, run_at=case.now)


class _Case(NamedTuple):
    """What deciding needs besides the job and its outcome."""

    now: datetime
    rng: Random
    profiles: Mapping[str, Profile]
    after: timedelta | None = None
    is_final: bool = False


def _kept(delay: timedelta) -> timedelta:
    """Clamp a delay to between zero and a hundred years."""
    return min(max(delay, timedelta()), MAX)


def _ended(job: Claimed, state: JobState, run: Run, *, status: RunStatus, reason: RunReason) -> Finish:
    """Start from the counters of a run that started and is charged."""
    return Finish(
        job.id,
        job.token,
        state,
        job.attempt,
        job.execution,
        0,
        job.consecutive_failures,
        job.completed_runs,
        status=status,
        reason=reason,
        run=run,
    )


def _returned(job: Claimed, outcome: Returned, run: Run, case: _Case) -> Finish:
    done = _completed(job, outcome, run)
    return done if job.cadence is None else _recurring(job, done, case, outcome.run_again_at)


def _completed(job: Claimed, outcome: Returned, run: Run) -> Finish:
    return Finish(
        job.id,
        job.token,
        JobState.COMPLETED,
        job.attempt,
        job.execution,
        0,
        0,
        job.completed_runs + 1,
        status=RunStatus.COMPLETED,
        result=outcome.result,
        done_reason=outcome.done_reason and sanitise_text(outcome.done_reason, ERROR_LIMIT),
        run=run,
    )


def _recurring(job: Claimed, finish: Finish, case: _Case, chosen: datetime | None = None) -> Finish:
    """Send a recurring job to its next slot, or end it when its rule has none."""
    recurrence = Recurrence.decode(job.cadence or "")
    if chosen is None:
        slot_at = recurrence.next(recurrence.served(job.slot_at, job.claimed_at), case.now)
        run_at = recurrence.run_time(slot_at, case.rng)
    else:
        slot_at = run_at = _chosen(chosen, case.now)
    if recurrence.has_ended(slot_at, finish.completed_runs):
        return finish._replace(state=JobState.COMPLETED, done_reason=finish.done_reason or "ended")
    return finish._replace(state=JobState.SCHEDULED, wait_reason=WaitReason.RECURRENCE, attempt=0, run_at=run_at, slot_at=slot_at)


def _chosen(moment: datetime, now: datetime) -> datetime:
    """Use the handler's next time, clamped to what a database can store."""
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return min(max(aware, now), now + MAX)


def _failed(job: Claimed, failure: Failure, run: Run, case: _Case) -> Finish:
    failure = bounded(failure)
    is_lost = failure.reason is RunReason.LEASE_EXPIRED
    # A suspect that kills the process it was quarantined in stays one; one that dies in a process of its own affects no other.
    crashes = {RunReason.LEASE_EXPIRED: job.crashes + 1, RunReason.WORKER_CRASHED: job.crashes}.get(failure.reason, 0)
    failed = _ended(job, JobState.FAILED, run, status=RunStatus.FAILED, reason=failure.reason)._replace(
        failure=failure,
        crashes=crashes,
        consecutive_failures=job.consecutive_failures + 1,
    )
    spec = RetrySpec.decode(job.retry)
    policy = spec.resolve(case.profiles)
    recurrence = None if job.cadence is None else Recurrence.decode(job.cadence)
    most = job.max_attempts or case.profiles[spec.profile].max_attempts
    has_attempts = job.attempt < most and not case.is_final
    dead = failed._replace(fingerprint=fingerprint(job.task, failure))
    if recurrence is not None and isinstance(recurrence.cadence, ByHandler) and not (is_lost and has_attempts):
        waiting = _backed_off(failed, policy, case)
        return dead if recurrence.has_ended(waiting.run_at or case.now, failed.completed_runs) else waiting
    if has_attempts:
        return _retried(failed, policy, case, is_lost=is_lost)
    if recurrence is None or recurrence.on_exhausted is OnExhausted.FAIL:
        return dead
    goes_on = _recurring(job, dead, case)
    if goes_on.run_at is None:
        return dead
    earliest = case.now + policy.delay(failed.consecutive_failures, case.rng)
    return goes_on._replace(run_at=max(goes_on.run_at, earliest))


def _retried(failed: Finish, policy: RetryPolicy, case: _Case, *, is_lost: bool) -> Finish:
    if is_lost:
        return failed._replace(state=JobState.SCHEDULED, wait_reason=WaitReason.LOST, run_at=case.now)
    delay = policy.delay(failed.attempt, case.rng) if case.after is None else _kept(case.after)
    return failed._replace(state=JobState.SCHEDULED, wait_reason=WaitReason.RETRY, delay=delay)


def _backed_off(failed: Finish, policy: RetryPolicy, case: _Case) -> Finish:
    """Never die: a job whose handler picks the next time counts its failures and waits longer each time."""
    delay = policy.delay(failed.consecutive_failures, case.rng) if case.after is None else _kept(case.after)
    next_at = case.now + delay
    return failed._replace(state=JobState.SCHEDULED, wait_reason=WaitReason.RETRY, attempt=0, run_at=next_at, slot_at=next_at)


def _waiting(job: Claimed, why: WaitReason, run: Run, reason: RunReason) -> Finish:
    """Refund the attempt, keep the execution: it ran, and nothing failed."""
    ended = _ended(job, JobState.SCHEDULED, run, status=RunStatus.CANCELLED, reason=reason)
    return ended._replace(wait_reason=why, attempt=job.attempt - 1)


def _unstarted(job: Claimed, why: WaitReason) -> Finish:
    """Refund the attempt and the execution number that the claim reserved."""
    return Finish(
        job.id,
        job.token,
        JobState.SCHEDULED,
        job.attempt - 1,
        job.execution - 1,
        job.crashes,
        job.consecutive_failures,
        job.completed_runs,
        wait_reason=why,
    )


def _cancelled(job: Claimed, reason: str, run: Run) -> Finish:
    ended = _ended(job, JobState.CANCELLED, run, status=RunStatus.CANCELLED, reason=RunReason.CANCELLED)
    return ended._replace(done_reason=sanitise_text(reason, ERROR_LIMIT) or "cancelled")


def _stopped(job: Claimed, run: Run, case: _Case, *, has_started: bool) -> Finish:
    if has_started:
        ended = _ended(job, JobState.CANCELLED, run, status=RunStatus.CANCELLED, reason=RunReason.STOPPED)
    else:
        ended = _unstarted(job, WaitReason.RECURRENCE)._replace(state=JobState.CANCELLED, wait_reason=None)
    ended = ended._replace(done_reason="stopped")
    if job.cadence is None:
        return ended
    return _recurring(job, ended._replace(done_reason=None), case)


def bounded(failure: Failure) -> Failure:
    """Clean and shorten a failure's texts so that every database can store them."""
    return Failure(
        sanitise_text(failure.message, ERROR_LIMIT) or sanitise_text(failure.kind, ERROR_LIMIT),
        sanitise_text(failure.kind, 200),
        None if failure.trace is None else sanitise_text(failure.trace, TRACE_LIMIT),
        failure.reason,
    )


# Addresses, UUIDs, digests and numbers.
_VARIABLE = re.compile(
    r"0x[0-9a-f]+|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}|\b[0-9a-f]{16,}\b|\b(?=[a-f]*\d)[0-9a-f]{8,}\b|\d+(?:[.,]\d+)*",
    re.IGNORECASE,
)


def fingerprint(task: str, failure: Failure) -> str:
    """Name a kind of failure: the same for messages that differ only in numbers and ids."""
    shape = _VARIABLE.sub("#", failure.message[:ERROR_LIMIT])[:500]
    return hashlib.sha256(f"{task}\n{failure.kind}\n{shape}".encode()).hexdigest()[:16]
