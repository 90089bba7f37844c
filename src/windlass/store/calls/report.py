"""The verbs of pull workers: pull, report, heartbeat, and the status of a job."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import NamedTuple

from windlass.core.breaker import BreakerPermit, BreakerSpec, BreakerState
from windlass.core.checks import check_text
from windlass.core.ids import MAX_JOB
from windlass.core.item import NewItem
from windlass.core.job import CLOSED, MAX_NAME, MAX_TEXT, Claimed, Held, JobState, Lease, Slices, WaitReason
from windlass.core.known_task import declared_breaker
from windlass.core.outcome import NO_RUN, Outcome, Raised, Returned, Run, decide
from windlass.core.payload import sanitise_text
from windlass.core.report import Case, JobStatus, Report, ReportAnswer, Standing, extension, standing
from windlass.core.topic import Topic
from windlass.errors import JobNotFound, LeaseLost
from windlass.store import rows
from windlass.store.calls import breakers, items, settings, wakes, work
from windlass.store.calls.call import Call, Means, Step, Steps
from windlass.store.calls.case import read_case
from windlass.store.rows import CLAIMED, SHAPES, Row, Shape

SHAPES |= {
    "repull": CLAIMED,
    "job_status": Shape((), (4,)),
}
_TOKENS = 2**63


def report(sent: Report) -> Call[ReportAnswer]:
    """Do everything one report asks for, or nothing; a key that was seen before is answered as it was then."""
    written = sent.encoded_items()
    reopened: list[str] = []

    def steps(means: Means) -> Steps[ReportAnswer]:
        reopened.clear()
        fence = sent.worker if sent.token is None else None
        case = yield from read_case(sent.job_id, key=sent.key, worker=fence)
        if case is None:
            raise JobNotFound(sent.job_id)
        if case.answer is not None:
            return ReportAnswer.decode(case.answer)
        how = standing(sent, case)
        if how is Standing.FINISHED:
            return _finished(case)
        if how is Standing.CANCELLED:
            answer = yield from _stop(sent, case)
        else:
            answer = yield from _apply(sent, case, written, _ReportContext(means, reopened))
        if sent.key is not None:
            kept = {"job_id": sent.job_id, "key": sent.key, "token": case.job.token, "answer": answer.encode()}
            yield Step("insert_idempotency", kept)
        return answer

    return Call(steps, is_urgent=True, wakes=lambda answer: {*_by_answer(answer), *wakes.work(reopened)})


def _by_answer(answer: ReportAnswer) -> Collection[Topic]:
    # Only a run that failed moves its job to another time; a run that goes on wakes no sleeper.
    return wakes.by_states([answer.state]) if answer.state is JobState.SCHEDULED else ()


def _finished(case: Case) -> ReportAnswer:
    return ReportAnswer(state=case.state, is_done=True, done_reason=case.done_reason)


def _stop(sent: Report, case: Case) -> Steps[ReportAnswer]:
    """Treat a report about a cancelled job as confirming that its run has stopped."""
    if case.has_lease:
        yield Step("stop", work.stop_params([(case.job.id, case.job.token, sent.run)], None))
    return ReportAnswer(state=JobState.CANCELLED, is_done=True, done_reason=case.done_reason, should_stop=True)


class _ReportContext(NamedTuple):
    """The data needed to apply a report besides the job and the report."""

    means: Means
    reopened: list[str]
    """Gates that the report has opened: sleepers are woken for them."""


def _apply(sent: Report, case: Case, written: Sequence[NewItem], context: _ReportContext) -> Steps[ReportAnswer]:
    """Keep what the holder of the lease has found, and end its run if the report asks for it."""
    added = yield from items.insert(case, written)
    said = items.progress_params(
        case,
        added,
        cursor=None if sent.cursor is None else sanitise_text(sent.cursor, work.MAX_CURSOR),
        message=None if sent.message is None else sanitise_text(sent.message, MAX_TEXT),
        lease=extension(sent.extend),
    )
    [[result_count, expires_at]] = yield Step("add_progress", said)
    if sent.reported is not None and sent.reported.progress_count is not None:
        counted = work.progress(case.job.id, case.job.token, count=sent.reported.progress_count)
        yield from counted.steps(context.means)
    answer = ReportAnswer(
        state=JobState.RUNNING,
        added=added.added,
        duplicates=added.duplicates,
        lease_expires_at=expires_at,
        should_stop=case.is_stopping,
    )
    outcome = sent.outcome(result_count, case.job.target_count)
    if outcome is None:
        return answer
    state = yield from _end(case, outcome, sent.run, context)
    return replace(
        answer,
        state=state,
        lease_expires_at=None,
        is_done=isinstance(outcome, Returned) or state in CLOSED,
        done_reason=outcome.done_reason if isinstance(outcome, Returned) else None,
        should_stop=False,
    )


def _end(case: Case, outcome: Outcome, run: Run, context: _ReportContext) -> Steps[JobState]:
    means = context.means
    profiles = yield from settings.current_profiles([case.job], means.profiles)
    ending = decide(case.job, outcome, run, now=case.now, rng=means.rng, profiles=profiles)
    yield from _record_in_breakers(case, outcome, context)
    left = rows.finished((yield Step("finish", work.finish_params([ending]))))
    return left[case.job.id]


def _record_in_breakers(case: Case, outcome: Outcome, context: _ReportContext) -> Steps[None]:
    """Record a run in the breaker it tries, before the lease that the permit hangs on is gone, and in the one of its task."""
    if not isinstance(outcome, Returned | Raised) or (isinstance(outcome, Raised) and outcome.is_final):
        # It shows nothing about the service, and the permit goes with the lease.
        return
    succeeded, permit = isinstance(outcome, Returned), BreakerPermit(case.job.id, case.job.token)
    found = yield Step("breakers_of_run", {**permit._asdict(), "task": case.job.task})
    names: set[str] = set()
    for name, threshold, open_us, options, failures in found:
        if options is None:
            spec: BreakerSpec | None = BreakerSpec(name, threshold, timedelta(microseconds=open_us))
        else:
            # An older process has not declared when it opens, and a success matters only where there were failures.
            spec = declared_breaker(name, options) if failures or not succeeded else None
        if spec is None or name in names:
            continue
        names.add(name)
        recorded = breakers.record(spec, permit, succeeded=succeeded, failures=0 if succeeded else 1)
        if (yield from recorded.steps(context.means)) is BreakerState.CLOSED and options is None:
            context.reopened.append(name)


def heartbeat(job_id: int, token: int, extend: timedelta | None = None) -> Call[Held]:
    """Extend a lease and learn whether the work is still wanted; raises LeaseLost when it is no longer ours."""
    is_possible = 0 < job_id <= MAX_JOB and abs(token) < _TOKENS
    renewal = work.renew([(job_id, token, None)] if is_possible else [], extension(extend))

    def steps(means: Means) -> Steps[Held]:
        for held in (yield from renewal.steps(means)):
            return held
        # Distinguishes an unknown job from one that others hold.
        yield from _status(job_id)
        raise LeaseLost(job_id)

    return Call(steps, is_urgent=True)


def job_status(job_id: int) -> Call[JobStatus]:
    """Return how a job stands; raises JobNotFound."""
    return Call(lambda _: _status(job_id), is_single=True, is_read=True)


def _status(job_id: int) -> Steps[JobStatus]:
    found: Sequence[Row] = (yield Step("job_status", {"id": job_id})) if 0 < job_id <= MAX_JOB else ()
    for number, lane, state, wait_reason, is_stopping, done_reason, last_error in found:
        why = None if wait_reason is None else WaitReason(wait_reason)
        return JobStatus(number, lane, JobState(state), why, is_stopping, done_reason, last_error)
    raise JobNotFound(job_id)


def pull(found: Slices, lease: Lease, pull_id: str | None = None) -> Call[Claimed | None]:
    """Take one job to be worked on at once; the same worker asking again under the same `pull_id` gets the same lease."""
    check_text("worker", lease.worker, MAX_NAME)
    if pull_id is not None:
        check_text("pull_id", pull_id, MAX_NAME)

    def steps(means: Means) -> Steps[Claimed | None]:
        if pull_id is not None:
            earlier = yield from pull_again(lease, pull_id)
            if earlier.job is not None:
                return earlier.job
        waiting = found.merged()
        if not waiting.open:
            return None
        job = yield from work.claim_any(waiting, lease).steps(means)
        if job is not None and pull_id is not None:
            # Another request with this pull_id has got one meanwhile: the unique index refuses, and the whole call begins anew.
            yield Step("mark_pull", {"id": job.id, "token": job.token, "pull_id": pull_id})
        return job

    return Call(steps)


class Earlier(NamedTuple):
    """The result of an earlier pull of the same name."""

    job: Claimed | None = None
    is_name_free: bool = True
    """Otherwise it holds a job of a lane that this pull does not name, and may not see."""


def pull_again(lease: Lease, pull_id: str, lanes: Collection[str] | None = None) -> Steps[Earlier]:
    """Look for the lease that an earlier pull of this name got."""
    for job_id, token, state, lane in (yield Step("find_pull", {"worker": lease.worker, "pull_id": pull_id})):
        if lanes is not None and lane not in lanes:
            return Earlier(is_name_free=False)
        if state == JobState.CANCELLED:
            # A pull that asks for it again has not begun with it.
            yield Step("stop", work.stop_params([(job_id, token, NO_RUN)], None))
            continue
        params = {"id": job_id, "token": token, "lease": lease.length}
        for job in rows.claimed((yield Step("repull", params))):
            return Earlier(job)
    return Earlier()
