"""How a job failed, whether others fail in the same way, and whether a retry is likely to help."""

from __future__ import annotations

from datetime import timedelta

from windlass.core.breaker import BreakerState
from windlass.core.explanation import FailureFacts, Prospect, counted, lasting, moment
from windlass.core.job import RunReason, RunStatus
from windlass.core.job_facts import AlikeLetters, JobFacts, kind_of

_NO_LETTERS = AlikeLetters(0, 0, None, None, 0, 0, 0)
_SEVERAL = 3
_FRESH = timedelta(minutes=15)
_BY_HAND = frozenset({"Buried", "FailedByHand"})
_BY_ARGUMENTS = frozenset({"InvalidPayload", "PayloadError", "TypeError", "ValidationError", "UnknownTask"})
"""Errors that come of what the job was given, which a retry does not change."""


def failure_of(facts: JobFacts) -> FailureFacts | None:
    """Describe the last failure of a job; None when none is known."""
    last, letter = facts.last_failed, facts.letter
    error = letter.error if letter is not None else last.error if last is not None else facts.job.last_error
    if error is None:
        return None
    kind = letter.fingerprint if letter is not None else kind_of(facts.job.task, last)
    failed = [run for run in facts.runs if run.status is RunStatus.FAILED]
    alike = facts.alike or _NO_LETTERS
    prospect, because = _prospect(facts, alike)
    return FailureFacts(
        error=error,
        error_type=None if last is None else last.error_type,
        reason=None if last is None or last.reason is None else last.reason.value,
        failed_runs=len(failed),
        same_error_runs=sum(kind_of(facts.job.task, run) == kind_of(facts.job.task, last) for run in failed),
        fingerprint=kind,
        letter_id=None if letter is None else letter.id,
        deaths=alike.deaths,
        is_deaths_exact=alike.is_exact,
        first_at=alike.first_at,
        last_at=alike.last_at,
        came_back=alike.came_back,
        succeeded=alike.succeeded,
        failed_again=alike.failed_again,
        completed_since=facts.since_failure.completed,
        failed_since=facts.since_failure.failed,
        retry=prospect,
        because=because,
    )


def _prospect(facts: JobFacts, alike: AlikeLetters) -> tuple[Prospect, str]:
    """Weigh what is known, the strongest evidence first."""
    if facts.holder is not None:
        return Prospect.UNLIKELY, f"job {facts.holder.id} holds its unique key, so a retry is refused"
    if (open_breaker := _open_breaker(facts)) is not None:
        return Prospect.UNLIKELY, f"breaker {open_breaker} is not closed: the service that the task needs still fails"
    ended = alike.succeeded + alike.failed_again
    if ended:
        prospect = Prospect.LIKELY if alike.succeeded > alike.failed_again else Prospect.UNLIKELY
        return prospect, f"{alike.succeeded} of {counted(ended, 'job')} that came back after this error completed"
    return _by_kind(facts) or _by_pace(facts, alike)


def _open_breaker(facts: JobFacts) -> str | None:
    known = facts.fleet.tasks.get(facts.job.task)
    breaker = None if known is None or known.breaker is None else facts.fleet.breakers.get(known.breaker)
    return None if breaker is None or breaker.state is BreakerState.CLOSED else breaker.name


def _by_kind(facts: JobFacts) -> tuple[Prospect, str] | None:
    last = facts.last_failed
    kind = None if last is None else last.error_type
    if not facts.job.executions:
        return Prospect.UNKNOWN, "it never ran: it was ended by hand while it waited"
    if kind in _BY_HAND:
        return Prospect.UNKNOWN, "an operator ended it; its own code has not failed"
    if kind in _BY_ARGUMENTS:
        return Prospect.UNLIKELY, f"{kind} usually comes of the arguments, which a retry does not change"
    if last is not None and last.reason is RunReason.TIMED_OUT:
        return Prospect.UNKNOWN, "it ran into its timeout; a longer one may help more than a retry"
    if last is not None and last.reason in {RunReason.LEASE_EXPIRED, RunReason.WORKER_CRASHED} and facts.job.crashes:
        lost = counted(facts.job.crashes, "time")
        return Prospect.UNKNOWN, f"its worker was lost {lost} with it, and it may kill the next one as well"
    return None


def _by_pace(facts: JobFacts, alike: AlikeLetters) -> tuple[Prospect, str]:
    since, last_at = facts.since_failure, alike.last_at or facts.job.last_error_at
    when = "" if last_at is None else f" since the last such failure at {moment(last_at)}"
    if since.completed and since.completed >= since.failed:
        return Prospect.LIKELY, f"{counted(since.completed, 'run')} of the task completed{when}, and {since.failed} failed"
    if since.failed:
        runs = f"{counted(since.failed, 'run')} failed{when}, and {since.completed} completed"
        return Prospect.UNLIKELY, f"the task goes on failing: {runs}"
    if last_at is not None and facts.fleet.now - last_at < _FRESH:
        age = lasting(facts.fleet.now - last_at)
        if alike.deaths >= _SEVERAL:
            return (
                Prospect.UNLIKELY,
                f"{alike.deaths} jobs died in this way, the last {age} ago, and no run of the task has completed since",
            )
        return Prospect.UNKNOWN, f"the last such failure was {age} ago, and no run of the task has ended since"
    return Prospect.UNKNOWN, f"no run of the task has ended{when or ' since'}"
