"""Endings by hand: an operator buries a job, fails its run or takes its lease."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from windlass.core.job import JobState, Lapsed
from windlass.core.outcome import ERROR_LIMIT, Failure, Finish, Raised, Run, decide, fingerprint
from windlass.core.payload import sanitise_text
from windlass.core.retry import RetrySpec
from windlass.store import batches, rows
from windlass.store.calls.call import Means, Step, Steps
from windlass.store.calls.move import Move, move, numbers
from windlass.store.calls.settings import current_profiles
from windlass.store.calls.work import end_leases, finish_params, parts
from windlass.store.rows import SHAPES

_MICROSECOND = timedelta(microseconds=1)
SHAPES |= {"leased": SHAPES["lapsed"]}


class _Due(NamedTuple):
    id: int
    retry: str
    attempt: int


def bury(ids: Sequence[int], error: str) -> Move:
    """Fail waiting jobs for good, each with a dead letter."""

    def changes(_: Means) -> Steps[set[int]]:
        yield Step("lock_jobs", {"ids": numbers(ids)})
        return (yield from _bury(ids, error))

    return move("bury", ids, changes)


def _bury(ids: Sequence[int], error: str) -> Steps[set[int]]:
    # Without the rest of the row: a payload may be large and is not needed here.
    found: list[tuple[int, str]] = list((yield Step("buriable", {"ids": numbers(ids)})))
    return (yield from bury_jobs(found, error)) if found else set()


def bury_jobs(jobs: Sequence[tuple[int, str]], error: str) -> Steps[set[int]]:
    """Fail waiting jobs, given as (id, task), that this transaction has locked."""
    failure = Failure(sanitise_text(error, ERROR_LIMIT) or "buried by hand", "Buried")
    # By task: a letter's fingerprint has which task failed how, and nothing of the single job.
    prints = {task: fingerprint(task, failure) for _, task in jobs}
    params = {
        "ids": numbers([job_id for job_id, _ in jobs]),
        "fingerprints": json.dumps(prints),
        "error": failure.message,
        "error_type": failure.kind,
    }
    return set(rows.ids((yield Step("bury", params))))


def fail(ids: Sequence[int], error: str, *, will_retry: bool) -> Move:
    """End runs as failed, by their policy or for good; the worker that holds such a run is refused when it reports.

    A due job that has not started waits for its retry then, and is charged no attempt: it has not run. One that waits for its
    time can only be failed for good.
    """

    def changes(means: Means) -> Steps[set[int]]:
        yield Step("lock_jobs", {"ids": numbers(ids)})
        [[moment]] = yield Step("clock", {})
        held = rows.lapsed((yield Step("leased", {"ids": numbers(ids)})))
        outcome = Raised(Failure(error, "FailedByHand"), is_final=not will_retry)
        current = means._replace(profiles=(yield from current_profiles((lease.job for lease in held), means.profiles)))
        endings = [_failed(lease, outcome, current, moment) for lease in held if not lease.is_cancelled]
        changed: set[int] = set()
        for part in parts(endings):
            changed |= rows.finished((yield Step("finish", finish_params(part)))).keys()
        waiting = [job_id for job_id in ids if job_id not in changed]
        changed |= yield from _postpone(waiting, error, means) if will_retry else _bury(waiting, error)
        return changed

    return move("fail", ids, changes, target=JobState.SCHEDULED if will_retry else JobState.FAILED)


def _postpone(ids: Sequence[int], error: str, means: Means) -> Steps[set[int]]:
    due = [_Due(*row) for row in (yield Step("postponable", {"ids": numbers(ids)}))]
    if not due:
        return set()
    profiles = yield from current_profiles(due, means.profiles)
    batch = batches.array(_later(job, means._replace(profiles=profiles)) for job in due)
    text = sanitise_text(error, ERROR_LIMIT) or "failed by hand"
    return set(rows.ids((yield Step("postpone", {"jobs": batch, "error": text}))))


def _later(job: _Due, means: Means) -> str:
    delay = RetrySpec.decode(job.retry).resolve(means.profiles).delay(job.attempt, means.rng)
    return f'{{"id":{job.id},"delay_us":{delay // _MICROSECOND}}}'


def _failed(lease: Lapsed, outcome: Raised, means: Means, now: datetime) -> Finish:
    # A run that was not reported as started counts from its claim: its failure means that it ran.
    run = Run(started_at=lease.started_at, finished_at=now, log_excerpt=lease.log_excerpt)
    return decide(lease.job, outcome, run, now=now, rng=means.rng, profiles=means.profiles)


def take_lease(ids: Sequence[int]) -> Move:
    """End leases as if they had not been renewed, whenever they would have ended."""

    def changes(means: Means) -> Steps[set[int]]:
        yield Step("lock_jobs", {"ids": numbers(ids)})
        [[moment]] = yield Step("clock", {})
        held = rows.lapsed((yield Step("leased", {"ids": numbers(ids)})))
        return set((yield from end_leases(held, means, moment, expired_before=None)))

    return move("take lease", ids, changes)
