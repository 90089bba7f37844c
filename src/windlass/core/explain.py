"""Why a job does not run, or why it ran when it did."""

from __future__ import annotations

from datetime import datetime, timedelta

from windlass.core.explain_failure import failure_of
from windlass.core.explanation import (
    MOST_BEFORE,
    Check,
    Explanation,
    FailureFacts,
    Prospect,
    Situation,
    counted,
    holds,
    lasting,
    moment,
    passes,
    typed,
)
from windlass.core.gate_checks import check_slots, check_upkeep, first_closed, gates_of
from windlass.core.job import CLOSED, RETRIED, Job, JobState, WaitReason
from windlass.core.job_facts import WATCHED, JobFacts

_SHORTEST_WATCH = timedelta(minutes=2)
"""A queue that was watched for less shows too little of its pace."""
_LONGEST_ERROR = 200
_MOST_NAMED = 5
_LONG_DUE = timedelta(seconds=10)


def explain_job(facts: JobFacts) -> Explanation:
    """Explain one job."""
    match facts.job.state:
        case JobState.RUNNING:
            return _running(facts)
        case JobState.COMPLETED:
            return _completed(facts)
        case JobState.FAILED:
            return _failed(facts)
        case JobState.CANCELLED:
            return _cancelled(facts)
        case _:
            return _waiting(facts)


def _answer(
    facts: JobFacts,
    verdict: Situation,
    sentence: str,
    *,
    command: str | None = None,
    details: list[Check] | None = None,
    position: int | None = None,
    is_position_exact: bool = True,
    estimated_start_at: datetime | None = None,
    failure: FailureFacts | None = None,
) -> Explanation:
    return Explanation(
        subject="job",
        name=str(facts.job.id),
        verdict=verdict,
        sentence=sentence,
        command=command,
        details=tuple(details or [_state(facts)]),
        position=position,
        is_position_exact=is_position_exact,
        estimated_start_at=estimated_start_at,
        failure=failure,
        read_at=facts.fleet.now,
    )


def _waiting(facts: JobFacts) -> Explanation:
    checks = list(_checks(facts))
    closed = first_closed(checks)
    position, is_exact = _position(facts)
    failure = failure_of(facts) if facts.job.wait_reason in RETRIED else None
    if closed is None or closed.verdict is None:
        return _answer(
            facts,
            Situation.NEXT,
            _next(facts),
            details=checks,
            command=typed("workers", "--online") if _has_waited(facts) else None,
            position=position,
            estimated_start_at=facts.fleet.now,
            failure=failure,
        )
    return _answer(
        facts,
        closed.verdict,
        f"{_sentence(closed.reason)}{_then(checks, closed)}",
        command=closed.command,
        details=checks,
        position=position,
        is_position_exact=is_exact,
        estimated_start_at=_estimate(facts, closed),
        failure=failure,
    )


def _has_waited(facts: JobFacts) -> bool:
    return facts.fleet.now - facts.job.run_at >= _LONG_DUE


def _next(facts: JobFacts) -> str:
    said = "Nothing holds it back: a worker with a free slot claims it at its next look, usually within a second."
    if not _has_waited(facts):
        return said
    waited = lasting(facts.fleet.now - facts.job.run_at)
    return f"{said} But it has been due for {waited}: the log of the workers shows whether they can claim."


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _then(checks: list[Check], closed: Check) -> str:
    """Name what holds it back once the first gate has opened."""
    rest = [check for check in checks[checks.index(closed) + 1 :] if check.passed is False]
    return "".join(f" Then: {check.reason}." for check in rest[:1])


def _checks(facts: JobFacts) -> list[Check]:
    job, fleet = facts.job, facts.fleet
    checks = [_state(facts), _due(facts)]
    if job.state is not JobState.PENDING:
        checks.append(_promotion(facts))
    if job.spawn:
        # A template is never claimed: the jobs it enqueues have gates of their own.
        return [*checks, *_child(facts)]
    gates = gates_of(fleet, job.lane, job.task)
    checks += gates
    if first_closed(gates) is None:
        checks += _turn(facts)
    return checks


def _state(facts: JobFacts) -> Check:
    job = facts.job
    if job.state is JobState.PAUSED and job.paused_at is not None:
        reason = f"it is paused since {moment(job.paused_at)} ({lasting(facts.fleet.now - job.paused_at)})"
        return holds("state", reason, Situation.HELD, typed("resume", job.id))
    return Check("state", job.state not in CLOSED, f"it is {job.state.value}")


def _due(facts: JobFacts) -> Check:
    job, now = facts.job, facts.fleet.now
    if job.run_at <= now:
        return passes("due", f"it is due since {moment(job.run_at)} ({lasting(now - job.run_at)})")
    when = f"{moment(job.run_at)} (in {lasting(job.run_at - now)})"
    command = typed("run-now", job.id)
    match job.wait_reason:
        case WaitReason.RETRY:
            after = f"attempt {job.attempt} of {facts.most_attempts} failed" if job.attempt else "a run failed"
            return holds("due", f"{after}, and it is tried again at {when}", Situation.RETRY_WAIT, typed("retry", job.id))
        case WaitReason.SNOOZE:
            reason = f"its handler put it off until {when}, or a breaker that the handler uses was open"
            return holds("due", reason, Situation.SNOOZED, command)
        case WaitReason.RECURRENCE:
            what = "it enqueues its next job" if job.spawn else "it comes back"
            return holds("due", f"{what} at {when}", Situation.WAITING_FOR_ITS_TIME, command)
        case _:
            return holds("due", f"it is not due before {when}", Situation.WAITING_FOR_ITS_TIME, command)


def _promotion(facts: JobFacts) -> Check:
    job, fleet = facts.job, facts.fleet
    found = check_upkeep(fleet, "spawn" if job.spawn else "promote")
    if found.passed is False or job.run_at > fleet.now or job.state is JobState.PAUSED:
        return found
    what = "enqueues its job" if job.spawn else "makes it claimable"
    reason = f"it is due since {lasting(fleet.now - job.run_at)}, and the upkeep {what} at its next round"
    return holds("upkeep", reason, Situation.PROMOTION_DUE, typed("chores"))


def _child(facts: JobFacts) -> list[Check]:
    if facts.job.child_key is None:
        return []
    if facts.holder is None:
        return [passes("unique", "no job of this template is under way")]
    holder = f"job {facts.holder.id} ({facts.holder.state.value})"
    reason = f"{holder} holds the key of its jobs: until it ends, this one enqueues nothing"
    return [holds("unique", reason, Situation.UNIQUE_HOLDER, typed("explain", facts.holder.id))]


def _turn(facts: JobFacts) -> list[Check]:
    """Check what a job that every gate lets through still waits for: a slot, and those before it."""
    job, fleet = facts.job, facts.fleet
    slots = check_slots(fleet, job.lane, job.task)
    order = _order(facts)
    if not job.crashes:
        return [*([] if slots is None else [slots]), order]
    running = sum(lease.suspects for lease in fleet.leases)
    how = "its last run ended with a lost worker, so it runs in quarantine: at most 4 such jobs at once in each worker"
    if facts.jobs_before or running:
        reason = f"{how}, {running} run now and {facts.jobs_before} of its lane come before it"
        return [holds("quarantine", reason, Situation.QUARANTINE, typed("job", job.id))]
    return [passes("quarantine", f"{how}, and there is room")]


def _order(facts: JobFacts) -> Check:
    before, lane = facts.jobs_before, facts.job.lane
    command = typed("boost", facts.job.id)
    if not before:
        return passes("order", f"it is the next of lane {lane}")
    if before > MOST_BEFORE:
        return holds("order", f"more than {MOST_BEFORE} due jobs of lane {lane} come before it", Situation.BEHIND_OTHERS, command)
    most = sorted(facts.before.items(), key=lambda one: -one[1])[:_MOST_NAMED]
    tasks = ", ".join(f"{jobs} of {task}" for task, jobs in most)
    come = "comes" if before == 1 else "come"
    return holds(
        "order", f"{counted(before, 'due job')} of lane {lane} {come} before it: {tasks}", Situation.BEHIND_OTHERS, command
    )


def _position(facts: JobFacts) -> tuple[int | None, bool]:
    if facts.job.state is not JobState.PENDING:
        return None, True
    if facts.jobs_before > MOST_BEFORE:
        return MOST_BEFORE, False
    return facts.jobs_before + 1, True


def _estimate(facts: JobFacts, closed: Check) -> datetime | None:
    """Estimate when it starts: never before it is due, and for a job in a queue by the pace of the queue."""
    job, now = facts.job, facts.fleet.now
    if closed.gate == "due":
        return job.run_at
    if closed.verdict not in {Situation.POOL_FULL, Situation.BEHIND_OTHERS} or facts.jobs_before > MOST_BEFORE:
        return None
    pace = _pace(facts)
    return None if not pace else now + timedelta(seconds=min((facts.jobs_before + 1) / pace, 10**9))


def _pace(facts: JobFacts) -> float:
    """Return how many jobs a second leave the queue: measured while this one was due, else by slots and length of runs."""
    watched = min(facts.fleet.now - facts.job.run_at, WATCHED)
    if watched >= _SHORTEST_WATCH and facts.while_due.total:
        return facts.while_due.total / watched.total_seconds()
    runs = sum(one.total for one in facts.lately.values())
    spent_s = sum(one.duration_ms for one in facts.lately.values()) / 1000
    slots = sum(one.slots for one in facts.fleet.capacities(facts.job.lane, facts.job.task))
    return slots * runs / max(spent_s, 0.001) if runs else 0.0


def _running(facts: JobFacts) -> Explanation:
    job, now = facts.job, facts.fleet.now
    if job.lease_expires_at is not None and job.lease_expires_at <= now:
        return _expired(facts, job.lease_expires_at)
    if job.started_at is None:
        since = "" if job.claimed_at is None else f" since {moment(job.claimed_at)}"
        sentence = f"Worker {job.worker} holds it ready{since} and starts it when a slot is free."
        return _answer(facts, Situation.CLAIMED, sentence)
    sentence = f"It has been running on worker {job.worker} for {lasting(now - job.started_at)}. {_why_then(job, job.started_at)}"
    if job.stop_requested:
        sentence += " It was asked to stop."
    if job.held:
        sentence += " It is paused after this run."
    if job.last_progress_at is not None and job.last_progress_at >= job.started_at:
        sentence += f" It last reported progress at {moment(job.last_progress_at)}."
    return _answer(facts, Situation.RUNNING, sentence, command=typed("job", job.id))


def _expired(facts: JobFacts, expired_at: datetime) -> Explanation:
    upkeep = check_upkeep(facts.fleet, "reclaim")
    reason = f"worker {facts.job.worker} has not renewed its lease, which ended at {moment(expired_at)}"
    after = "the upkeep takes it back soon, and it runs again" if upkeep.passed else upkeep.reason
    command = upkeep.command or typed("take-lease", facts.job.id)
    checks = [_state(facts), holds("lease", reason, Situation.LEASE_EXPIRED, command), upkeep]
    sentence = f"{_sentence(reason)} {_sentence(after)}"
    return _answer(facts, Situation.LEASE_EXPIRED, sentence, command=command, details=checks)


def _why_then(job: Job, started_at: datetime) -> str:
    """Write what it waited for before it started, as far as the row shows."""
    if job.slot_at is not None:
        planned = f"It was planned for {moment(job.slot_at)}"
    elif job.run_at > job.created_at:
        planned = f"It was enqueued at {moment(job.created_at)} to run at {moment(job.run_at)}"
    else:
        planned = f"It was due when it was enqueued, at {moment(job.run_at)}"
    waited = started_at - job.run_at
    how = f"and waited {lasting(waited)} for a free slot" if waited > timedelta() else "and started at once"
    is_aged = job.priority > job.base_priority
    aged = f", while aging raised its priority from {job.base_priority} to {job.priority}" if is_aged else ""
    return f"{planned}, {how}{aged}."


def _completed(facts: JobFacts) -> Explanation:
    job = facts.job
    at = job.finished_at or job.closed_at or job.updated_at
    if job.started_at is None:
        return _answer(facts, Situation.COMPLETED, f"It is completed since {moment(at)}.")
    run = next((one for one in facts.runs if one.finished_at is not None), None)
    after = f" at attempt {run.attempt}" if run is not None and run.attempt > 1 else ""
    ended = " Its schedule has ended." if job.cadence is not None else ""
    took = f"It completed at {moment(at)}{after}, after a run of {lasting(at - job.started_at)}."
    return _answer(facts, Situation.COMPLETED, f"{took} {_why_then(job, job.started_at)}{ended}")


def _failed(facts: JobFacts) -> Explanation:
    job, failure = facts.job, failure_of(facts)
    is_used_up = job.attempt >= facts.most_attempts and facts.last_failed is not None
    used = f"{job.attempt} of {counted(facts.most_attempts, 'attempt')} used"
    verdict = Situation.ATTEMPTS_USED_UP if is_used_up else Situation.FAILED
    attempts = holds("attempts", used, verdict, typed("retry", job.id)) if is_used_up else passes("attempts", used)
    return _answer(
        facts,
        verdict,
        _sentence(f"all attempts failed ({used})" if is_used_up else "it failed for good") + _end(failure),
        command=_remedy(facts, failure),
        details=[_state(facts), attempts, _key(facts)],
        failure=failure,
    )


def _end(failure: FailureFacts | None) -> str:
    if failure is None:
        return ""
    error = (failure.error.splitlines() or [""])[0][:_LONGEST_ERROR].rstrip(".")
    return f" Its error: {error}. {_PROSPECTS[failure.retry]}: {failure.because}."


_PROSPECTS = {
    Prospect.LIKELY: "A retry is likely to help",
    Prospect.UNLIKELY: "A retry is not likely to help",
    Prospect.UNKNOWN: "Whether a retry helps is not known",
}


def _key(facts: JobFacts) -> Check:
    if facts.holder is None:
        return passes("unique", "no other job holds its unique key")
    reason = f"job {facts.holder.id} ({facts.holder.state.value}) holds its unique key: a retry is refused until it ends"
    return holds("unique", reason, Situation.UNIQUE_HOLDER, typed("explain", facts.holder.id))


def _remedy(facts: JobFacts, failure: FailureFacts | None) -> str:
    if facts.holder is not None:
        return typed("explain", facts.holder.id)
    if failure is not None and failure.retry is not Prospect.LIKELY and failure.letter_id is not None:
        return typed("dead", "show", failure.letter_id)
    return typed("retry", facts.job.id)


def _cancelled(facts: JobFacts) -> Explanation:
    job = facts.job
    at = f"at {moment(job.closed_at)}" if job.closed_at is not None else ""
    if job.done_reason == "superseded":
        holder = facts.holder
        who = "another job" if holder is None else f"job {holder.id} ({holder.state.value})"
        sentence = f"It was about to come back {at}, but its unique key was taken meanwhile: {who} runs in its place."
        command = typed("clone", job.id) if holder is None else typed("explain", holder.id)
        return _answer(facts, Situation.UNIQUE_HOLDER, sentence, command=command, details=[_state(facts), _key(facts)])
    why = f" ({job.cancel_reason})" if job.cancel_reason not in {None, "cancelled"} else ""
    still = f" Worker {job.worker} has not reported yet that its run has stopped." if job.token is not None else ""
    return _answer(facts, Situation.CANCELLED, f"It was cancelled {at}{why}.{still}", command=typed("clone", job.id))
