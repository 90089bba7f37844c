"""Schedules by name: defined in code or by a call, ensured, switched by the caller's data, disabled when no longer declared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from random import Random
from typing import Any, NamedTuple

from windlass.core.cadence import Recurrence
from windlass.core.checks import check_range, check_text, check_wait
from windlass.core.job import MAX_NAME, MAX_SCHEDULE_NAME, Job, JobState, NewJob, OnConflict
from windlass.core.transitions import Moved
from windlass.errors import DuplicateJob, InvalidInput, JobNotFound, LeaseHeld, ScheduleTaken, SlotTaken, StoreConflict
from windlass.store import batches, rows
from windlass.store.calls import wakes
from windlass.store.calls.call import Call, Means, Step, Steps, known
from windlass.store.calls.move import answer, was_moved
from windlass.store.calls.work import enqueue

MAX_NAMES = 10_000
# Declaring again within this time writes nothing: workers that start together only read.
FRESH = timedelta(minutes=1)
_ANEW = frozenset({JobState.FAILED, JobState.CANCELLED})


def get(name: str) -> Call[Job]:
    """Read a schedule; raises JobNotFound."""
    return Call(lambda _: _get(name), is_read=True)


def define(job: NewJob) -> Call[Job]:
    """Make a schedule as described, or change the one of this name; only a new cadence moves its next run."""

    def steps(means: Means) -> Steps[Job]:
        return (yield from _defined(job, means)).job

    return Call(steps, wakes=lambda left: wakes.by_jobs([left]))


def ensure(job: NewJob) -> Call[Job]:
    """Do what `define` does and see that the schedule goes on: enabled, and begun anew if it had failed or was cancelled."""

    def steps(means: Means) -> Steps[Job]:
        defined = yield from _defined(job, means)
        found = defined.job
        if found.state in _ANEW:
            yield from _begin_anew(found, defined.moment, means.rng)
        elif not found.is_enabled:
            yield Step("enable", {"ids": batches.numbers([found.id])})
        else:
            return found
        return (yield from _read(found.id))

    return Call(steps, wakes=lambda left: wakes.by_jobs([left]))


def sync_enabled(name: str, predicate: Callable[[Any], Any]) -> Call[Job]:
    """Enable or disable a schedule by what `predicate` returns once no other can; it is given the transaction's connection."""

    def steps(_: Means) -> Steps[Job]:
        found = yield from _get(name)
        ids = batches.numbers([found.id])
        # Locked first: a later caller sees what we have seen, and whatever was committed before.
        yield Step("lock_jobs", {"ids": ids})
        [[is_wanted]] = yield Step("", {}, ask=predicate)
        changed = yield Step("enable" if is_wanted else "disable", {"ids": ids})
        left = yield from _read(found.id)
        # What has ended need not be stopped, but will not go on either.
        return left if changed or not is_wanted else answer("enable", [left.id], set(), [left]).one()

    return Call(steps, wakes=lambda left: wakes.by_jobs([left]))


def touch_declared(app: str, names: Sequence[str]) -> Call[list[str]]:
    """Record that an application still declares these; returns them, without any that were disabled meanwhile."""
    if not names:
        return known([])
    check_range("names", len(names), 1, MAX_NAMES)
    params = {"app": app, "names": batches.array(map(batches.quote, names))}

    def steps(_: Means) -> Steps[list[str]]:
        return [name for (name,) in (yield Step("touch_declared", params))]

    return Call(steps, is_single=True)


def prune_declared(app: str, older_than: timedelta, keep: Sequence[str] = ()) -> Call[Moved]:
    """Disable what an application has not declared for so long, but for names to keep; what others declared, or none, stays."""
    check_text("app", app, MAX_NAME)
    check_wait("older_than", older_than, least=timedelta())

    def steps(_: Means) -> Steps[Moved]:
        params = {"app": app, "older_than": older_than}
        names = batches.array(map(batches.quote, keep))
        stale = batches.numbers(rows.ids((yield Step("stale_declared", {"names": names, **params}))))
        yield Step("lock_jobs", {"ids": stale})
        # Guarded once more: a worker may have declared it while we waited.
        gone = batches.numbers(rows.ids((yield Step("withdraw_declared", {"ids": stale, **params}))))
        disabled = set(rows.ids((yield Step("disable", {"ids": gone}))))
        left = rows.jobs((yield Step("get_jobs", {"ids": gone})))
        return Moved("prune", tuple(job for job in left if job.id in disabled), (), ())

    return Call(steps, deed=was_moved, wakes=wakes.by_move)


class _Defined(NamedTuple):
    job: Job
    moment: datetime


def _get(name: str) -> Steps[Job]:
    check_text("name", name, MAX_SCHEDULE_NAME)
    keys = batches.array([f'{{"ord":0,"task":"","name":{batches.quote(name)}}}'])
    for _, job_id, _ in (yield Step("find_holders", {"keys": keys})):
        return (yield from _read(job_id))
    raise JobNotFound(name)


def _read(job_id: int) -> Steps[Job]:
    for job in rows.jobs((yield Step("get_jobs", {"ids": batches.numbers([job_id])}))):
        return job
    raise StoreConflict(f"job {job_id} was deleted meanwhile")


def _defined(job: NewJob, means: Means) -> Steps[_Defined]:
    if job.name is None or job.recurrence is None:
        raise InvalidInput("name", job.name, "a schedule has a name and a cadence")
    [enqueued] = yield from enqueue([replace(job, on_conflict=OnConflict.IGNORE)]).steps(means)
    yield Step("lock_jobs", {"ids": batches.numbers([enqueued.id])})
    [[moment]] = yield Step("clock", {})
    found = yield from _read(enqueued.id)
    if enqueued.is_duplicate:
        _check_owner(found, job)
        found = yield from _redefined(found, job, job.recurrence, _Chance(moment, means.rng))
    return _Defined(found, moment)


class _Chance(NamedTuple):
    """When a change happens, and the dice."""

    moment: datetime
    rng: Random


def _check_owner(found: Job, job: NewJob) -> None:
    if found.name != job.name:
        raise DuplicateJob(job.task, job.unique_key or "", found.id)
    if found.declared_by not in {None, job.declared_by}:
        raise ScheduleTaken(found.name or "", found.declared_by or "")
    if (found.task, found.spawn) != (job.task, job.spawn):
        kind = "template" if found.spawn else "job"
        raise InvalidInput("name", job.name, f"is a {kind} of task {found.task!r} already; delete it or choose another name")


def _redefined(found: Job, job: NewJob, rule: Recurrence, chance: _Chance) -> Steps[Job]:
    is_declared = job.declared_by is not None
    was_let_go = is_declared and found.declared_by is not None and found.declared_at is None
    is_fresh = not is_declared or (found.declared_at is not None and chance.moment - found.declared_at <= FRESH)
    if is_fresh and found.declared_by == job.declared_by and _wanted(job) == found_parts(found):
        return found
    slot_at = None if _keeps_time(found, rule) else rule.first(chance.moment)
    params = {
        **_wanted(job),
        "id": found.id,
        "declared_by": job.declared_by,
        "next_slot_at": slot_at,
        "next_at": None if slot_at is None else rule.run_time(slot_at, chance.rng),
    }
    yield Step("redefine", params)
    if was_let_go and not found.is_enabled:
        yield Step("enable", {"ids": batches.numbers([found.id])})
    return (yield from _read(found.id))


def _keeps_time(found: Job, rule: Recurrence) -> bool:
    try:
        return found.recurrence is not None and rule.keeps_time_of(found.recurrence)
    except InvalidInput:
        return False


def _wanted(job: NewJob) -> dict[str, Any]:
    """Return what a schedule is made of, as a row has it."""
    return {
        "lane": job.lane,
        "priority": job.priority,
        "max_attempts": job.max_attempts,
        "retry": job.retry.encode(),
        "timeout_us": None if job.timeout is None else batches.microseconds(job.timeout),
        "cadence": None if job.recurrence is None else job.recurrence.encode(),
        "child_key": job.child_key,
        "subject": job.subject,
        "payload": job.payload,
        "metadata": job.metadata,
        "description": job.description,
    }


def found_parts(job: Job) -> dict[str, Any]:
    """Return what a schedule is made of now, as `redefine` takes it."""
    return {
        "lane": job.lane,
        "priority": job.base_priority,
        "max_attempts": job.max_attempts,
        "retry": job.retry,
        "timeout_us": job.timeout_us,
        "cadence": job.cadence,
        "child_key": job.child_key,
        "subject": job.subject,
        "payload": job.payload_json,
        "metadata": job.metadata_json,
        "description": job.description,
    }


def _begin_anew(job: Job, moment: datetime, rng: Random) -> Steps[None]:
    if job.token is not None:
        raise LeaseHeld(job.id, job.worker, "begin anew")
    rule = Recurrence.decode(job.cadence or "")
    slot_at = rule.first(moment)
    params = {"id": job.id, "next_slot_at": slot_at, "next_at": rule.run_time(slot_at, rng)}
    if not (yield Step("begin_anew", params)):
        for job_id, holder in (yield Step("holders_of", {"ids": batches.numbers([job.id])})):
            raise SlotTaken(job_id, holder)
