"""The rules of one run that has ended, told apart from what operators did meanwhile."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from datetime import datetime, timedelta

from windlass.core.cadence import ByHandler, Cron, Every, Misfire, OnExhausted, Recurrence
from windlass.core.job import Claimed, JobState, RunReason, RunStatus, WaitReason
from windlass.core.outcome import (
    Cancelled,
    LeaseExpired,
    Outcome,
    Raised,
    Released,
    Returned,
    Snoozed,
    Stopped,
)
from windlass.core.retry import RetrySpec

MISSED_AFTER = timedelta(seconds=60)
HOUR = timedelta(hours=1)
DEFAULT_ATTEMPTS = {"task": 3, "interval": 4}
DEFAULT_DELAYS = {
    "task": (timedelta(seconds=1), timedelta(minutes=5)),
    "interval": (timedelta(seconds=60), timedelta(hours=1)),
}


@dataclass
class PastRun:
    """An execution; its fields must be equal to those of `Execution`."""

    number: int
    attempt: int
    token: int
    slot_at: datetime | None
    worker: str
    started_at: datetime
    finished_at: datetime
    wait_ms: int
    status: RunStatus | None
    reason: RunReason | None
    error: str | None
    stopped_at: datetime | None = None


@dataclass
class Verdict:
    """What becomes of the job when no operator had a wish."""

    state: JobState
    _: KW_ONLY
    wait_reason: WaitReason | None = None
    run_at: datetime | None = None
    """None keeps the due time, which has passed: due at once."""
    slot_at: datetime | None = None
    status: RunStatus | None = None
    """None: it never started, and leaves no execution."""
    reason: RunReason | None = None
    error: str | None = None
    done_reason: str | None = None
    is_charged: bool = True
    is_fresh: bool = False
    is_crash: bool = False
    is_death: bool = False


def judge(  # noqa: C901, PLR0911 - a case for each outcome
    job: Claimed, outcome: Outcome, decided_at: datetime, now: datetime
) -> Verdict:
    """Say what one outcome means; slots count from when the worker decided, waits from when the store learns of it."""
    match outcome:
        case Returned(run_again_at=chosen, done_reason=why):
            verdict = Verdict(JobState.COMPLETED, status=RunStatus.COMPLETED, done_reason=why)
            return _goes_on(job, verdict, decided_at, runs=job.completed_runs + 1, chosen=chosen)
        case Raised(failure, after, is_final):
            verdict = Verdict(JobState.FAILED, status=RunStatus.FAILED, reason=failure.reason, error=failure.message)
            return _failed(job, verdict, decided_at, now, after=after, is_final=is_final)
        case Snoozed(delay):
            return _set_aside(WaitReason.SNOOZE, RunReason.SNOOZED, now + delay)
        case Released(has_started=True):
            return _set_aside(WaitReason.RELEASED, RunReason.RELEASED, None)
        case Released():
            return Verdict(JobState.SCHEDULED, wait_reason=WaitReason.RELEASED, is_charged=False)
        case Cancelled(why):
            return Verdict(JobState.CANCELLED, status=RunStatus.CANCELLED, reason=RunReason.CANCELLED, done_reason=why)
        case Stopped(has_started):
            return _stopped(job, decided_at, has_started=has_started)
        case LeaseExpired(has_started, is_stopping=True):
            return replace(_stopped(job, decided_at, has_started=has_started), is_crash=True)
        case LeaseExpired(has_started=True):
            error = f"worker {job.worker} stopped renewing its lease"
            verdict = Verdict(
                JobState.FAILED, status=RunStatus.FAILED, reason=RunReason.LEASE_EXPIRED, error=error, is_crash=True
            )
            return _failed(job, verdict, decided_at, now)
        case LeaseExpired():
            return Verdict(JobState.SCHEDULED, wait_reason=WaitReason.LOST, run_at=now, is_charged=False, is_crash=True)


def _set_aside(why: WaitReason, reason: RunReason, run_at: datetime | None) -> Verdict:
    return Verdict(
        JobState.SCHEDULED, wait_reason=why, run_at=run_at, status=RunStatus.CANCELLED, reason=reason, is_charged=False
    )


def _stopped(job: Claimed, decided_at: datetime, *, has_started: bool) -> Verdict:
    why = "stopped" if job.cadence is None else None
    verdict = Verdict(JobState.CANCELLED, done_reason=why, is_charged=has_started)
    if has_started:
        verdict.status, verdict.reason = RunStatus.CANCELLED, RunReason.STOPPED
    return _goes_on(job, verdict, decided_at, runs=job.completed_runs)


def _goes_on(job: Claimed, verdict: Verdict, decided_at: datetime, *, runs: int, chosen: datetime | None = None) -> Verdict:
    """Send a recurring job to its next slot, or end it."""
    if job.cadence is None:
        return verdict
    rule = Recurrence.decode(job.cadence)
    next_at = chosen or next_slot(rule, job.slot_at, decided_at, claimed_at=job.claimed_at)
    if rule.has_ended(next_at, runs):
        verdict.state, verdict.done_reason = JobState.COMPLETED, verdict.done_reason or "ended"
        return verdict
    verdict.state, verdict.wait_reason, verdict.is_fresh = JobState.SCHEDULED, WaitReason.RECURRENCE, True
    verdict.run_at = verdict.slot_at = next_at
    return verdict


def _failed(
    job: Claimed,
    verdict: Verdict,
    decided_at: datetime,
    now: datetime,
    *,
    after: timedelta | None = None,
    is_final: bool = False,
) -> Verdict:
    rule = None if job.cadence is None else Recurrence.decode(job.cadence)
    is_lost = verdict.reason is RunReason.LEASE_EXPIRED
    has_attempts = job.attempt < _most_attempts(job) and not is_final
    if is_lost and has_attempts:
        verdict.state, verdict.wait_reason, verdict.run_at = JobState.SCHEDULED, WaitReason.LOST, now
    elif rule is not None and isinstance(rule.cadence, ByHandler):
        _back_off(job, rule, verdict, decided_at=decided_at, after=after)
    elif has_attempts:
        verdict.state, verdict.wait_reason = JobState.SCHEDULED, WaitReason.RETRY
        verdict.run_at = now + (backoff(job.retry, job.attempt) if after is None else after)
    else:
        verdict.is_death = True
        if rule is not None:
            _survive(job, rule, verdict, decided_at)
    return verdict


def _back_off(job: Claimed, rule: Recurrence, verdict: Verdict, *, decided_at: datetime, after: timedelta | None) -> None:
    """Wait longer each time: a job whose handler picks the time never dies of failures, only of its end."""
    next_at = decided_at + (backoff(job.retry, job.consecutive_failures + 1) if after is None else after)
    if rule.has_ended(next_at, job.completed_runs):
        verdict.is_death = True
        return
    verdict.state, verdict.wait_reason, verdict.is_fresh = JobState.SCHEDULED, WaitReason.RETRY, True
    verdict.run_at = verdict.slot_at = next_at


def _survive(job: Claimed, rule: Recurrence, verdict: Verdict, decided_at: datetime) -> None:
    """Let a schedule go on after a death, unless it was told not to or has no slot left."""
    next_at = next_slot(rule, job.slot_at, decided_at, claimed_at=job.claimed_at)
    if rule.on_exhausted is OnExhausted.FAIL or rule.has_ended(next_at, job.completed_runs):
        return
    verdict.state, verdict.wait_reason, verdict.is_fresh = JobState.SCHEDULED, WaitReason.RECURRENCE, True
    verdict.slot_at = next_at
    verdict.run_at = max(next_at, decided_at + backoff(job.retry, job.consecutive_failures + 1))


def _most_attempts(job: Claimed) -> int:
    return job.max_attempts or DEFAULT_ATTEMPTS[RetrySpec.decode(job.retry).profile]


def backoff(retry: str, failures: int) -> timedelta:
    """Double the wait with each failure; the jobs of the model test have no jitter."""
    spec = RetrySpec.decode(retry)
    base, cap = DEFAULT_DELAYS[spec.profile]
    wait, most = spec.base or base, spec.cap or cap
    for _ in range(failures - 1):
        wait = min(wait * 2, most)
    return min(wait, most)


def first_slot(rule: Recurrence, now: datetime) -> datetime:
    """When a job created or resumed now runs first."""
    match rule.cadence:
        case Every(period):
            return now + period
        case Cron():
            return _next_hour(now)
        case ByHandler():
            return now


def next_slot(
    rule: Recurrence, slot_at: datetime | None, now: datetime, *, claimed_at: datetime, is_fixed: bool = False
) -> datetime:
    """When a job runs after a run that was planned for `slot_at`, was claimed at `claimed_at` and ended now."""
    match rule.cadence:
        case Every(period) if (is_fixed or rule.fixed_rate) and slot_at is not None:
            return _next_fixed(rule, slot_at, period, now, claimed_at=claimed_at)
        case Every(period):
            return now + period
        case Cron():
            return slot_at if slot_at is not None and slot_at > now else _next_hour(now)
        case ByHandler(fallback):
            return now + fallback


def caught_up(rule: Recurrence, slot_at: datetime, now: datetime, *, is_fixed: bool = False) -> datetime:
    """Which slot a job waits for that was not claimed in time."""
    if rule.misfire is Misfire.ONCE:
        return slot_at
    assert isinstance(rule.cadence, Every)
    assert is_fixed or rule.fixed_rate
    slots = _slots(slot_at, rule.cadence.period, now)
    if rule.misfire is Misfire.SKIP:
        return next(slot for slot in slots if now - slot <= MISSED_AFTER)
    return [slot for slot in slots if slot <= now][-rule.misfire_max :][0]


def _slots(first: datetime, period: timedelta, now: datetime) -> list[datetime]:
    """Walk to the first slot after now."""
    slots = [first]
    while slots[-1] <= now:
        slots.append(slots[-1] + period)
    return slots


def _next_hour(now: datetime) -> datetime:
    """Find the next @hourly slot, the only cron rule here; the others are the cadence's own tests'."""
    return now.replace(minute=0, second=0, microsecond=0) + HOUR


def _next_fixed(rule: Recurrence, slot_at: datetime, period: timedelta, now: datetime, *, claimed_at: datetime) -> datetime:
    if slot_at > now:
        return slot_at
    if rule.misfire is Misfire.ONCE and claimed_at - slot_at - period > MISSED_AFTER:
        # One late run stands for every slot that had come when it began.
        slot_at = [slot for slot in _slots(slot_at, period, claimed_at) if slot <= claimed_at][-1]
    following = slot_at + period
    if now - following <= MISSED_AFTER:
        return following
    if rule.misfire is Misfire.ONCE:
        return [slot for slot in _slots(following, period, now) if slot <= now][-1]
    return caught_up(rule, following, now, is_fixed=True)
