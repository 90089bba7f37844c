"""Every verb as data: which statements to send, with what, and what their rows mean. No I/O."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from random import Random
from typing import Any, Generic, NamedTuple, TypeVar

from windlass.core.cadence import EPOCH, Recurrence
from windlass.core.checks import check_range, check_text
from windlass.core.contact import Contact
from windlass.core.ids import MAX_JOB
from windlass.core.job import (
    MAX_NAME,
    MAX_TEXT,
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
    OnConflict,
    Promoted,
    Slice,
    Slices,
)
from windlass.core.outcome import NO_RUN, Finish, LeaseExpired, Run, decide
from windlass.core.payload import sanitise_text
from windlass.core.retry import Profile, RetrySpec
from windlass.core.transitions import Moved
from windlass.errors import DuplicateJob, InvalidInput, SlotTaken, StoreConflict
from windlass.store import documents, rows
from windlass.store.documents import Entry
from windlass.store.rows import Row

T = TypeVar("T")
Steps = Generator["Step", Sequence[Row], T]

MAX_ARMS = 64
MAX_CLAIM = 1000
MAX_LIST = 500
MAX_CURSOR = 65_536
ENQUEUE_ROWS = 1000
_LOOKS = 10


class Step(NamedTuple):
    """One query of a call; `arms` is how many slices a claim reads."""

    query: str
    params: Mapping[str, Any]
    arms: int = 0


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """A verb ready to run, in one transaction."""

    steps: Callable[[], Steps[T]]
    is_single: bool = False
    """One statement on PostgreSQL, so it needs no transaction around it."""
    is_read: bool = False
    is_urgent: bool = False
    """Goes before other waiting calls: a late renewal or finish costs a run."""


def _single(query: str, params: Mapping[str, Any], decode: Callable[[Sequence[Row]], T], **marks: bool) -> Call[T]:
    def steps() -> Steps[T]:
        return decode((yield Step(query, params)))

    return Call(steps, is_single=True, **marks)


def clock(now: datetime | None = None) -> Call[datetime]:
    """Ask the database what time it is."""
    return _single("clock", {"now": now}, lambda found: found[0][0], is_read=True)


def identity() -> Call[str]:
    """Ask which set of tables this is."""
    return _single("identity", {}, lambda found: found[0][0], is_read=True)


def enqueue(jobs: Sequence[NewJob], now: datetime | None = None) -> Call[list[Enqueued]]:
    """Insert jobs; the answer has one entry for each, in order."""
    if any(job.recurrence is not None and job.run_at is None and job.delay is None for job in jobs):
        return Call(lambda: _enqueue_recurring(jobs, now))
    entries = [documents.new_job(job) for job in jobs]
    has_keys = any(job.unique_key is not None or job.name is not None for job in jobs)
    is_single = not has_keys and len(list(documents.batches(entries, ENQUEUE_ROWS))) == 1
    return Call(lambda: _enqueue(jobs, entries, now), is_single=is_single)


def _enqueue_recurring(jobs: Sequence[NewJob], now: datetime | None) -> Steps[list[Enqueued]]:
    """Give recurring jobs without a time their first slot, counted from the database's clock."""
    [[moment]] = yield Step("clock", {"now": now})
    timed = [
        replace(job, run_at=job.recurrence.first(moment))
        if job.recurrence is not None and job.run_at is None and job.delay is None
        else job
        for job in jobs
    ]
    return (yield from _enqueue(timed, [documents.new_job(job) for job in timed], now))


def _enqueue(jobs: Sequence[NewJob], entries: Sequence[Entry], now: datetime | None) -> Steps[list[Enqueued]]:
    found: dict[int, Enqueued] = {}
    waiting: Sequence[int] = range(len(jobs))
    for _ in range(_LOOKS):
        found.update((yield from _insert(waiting, entries, now)))
        waiting = [place for place in waiting if place not in found]
        if waiting:
            found.update((yield from _meet_holders(jobs, waiting, now)))
            waiting = [place for place in waiting if place not in found]
        if not waiting:
            return [found[place] for place in range(len(jobs))]
    taken = jobs[waiting[0]]
    raise StoreConflict(f"task {taken.task!r}: the holder of unique key {taken.unique_key or taken.name!r} stays invisible")


def _insert(places: Sequence[int], entries: Sequence[Entry], now: datetime | None) -> Steps[dict[int, Enqueued]]:
    inserted: dict[int, Enqueued] = {}
    ordered = [entries[place] for place in places]
    for cut in documents.batches(ordered, ENQUEUE_ROWS):
        part = places[cut]
        batch = documents.in_order(ordered[cut])
        for place, job_id in (yield Step("insert_jobs", {"jobs": batch, "now": now})):
            inserted[part[place]] = Enqueued(job_id)
    return inserted


def _meet_holders(jobs: Sequence[NewJob], places: Sequence[int], now: datetime | None) -> Steps[dict[int, Enqueued]]:
    """Do what each job asked for in case its key is taken."""
    keys = documents.array(_key_document(order, jobs[place]) for order, place in enumerate(places))
    holders = {places[order]: (job_id, JobState(state)) for order, job_id, state in (yield Step("find_holders", {"keys": keys}))}
    replaced: dict[int, str] = {}
    rerun: dict[int, list[int]] = {}
    # In the order of the request: of several replacements the last one counts.
    for place, (holder, state) in sorted(holders.items()):
        job = jobs[place]
        match job.on_conflict:
            case OnConflict.REJECT:
                raise DuplicateJob(job.task, job.unique_key or job.name or "", holder)
            case OnConflict.REPLACE:
                due = documents.when(job.run_at, job.delay)
                replaced[holder] = f'{{"id":{holder},"payload":{job.payload},"priority":{job.priority}{due}}}'
            case OnConflict.RERUN if state is JobState.RUNNING:
                rerun.setdefault(holder, []).append(place)
    met = {place: Enqueued(holder, is_duplicate=True) for place, (holder, _) in holders.items()}
    if replaced:
        yield Step("replace_waiting", {"jobs": documents.array(replaced.values()), "now": now})
    if rerun:
        marked = rows.ids((yield Step("rerun_holders", {"ids": documents.numbers(rerun), "now": now})))
        # A holder that ended between the look and the mark will not run again: those that asked for it try anew.
        for holder in rerun.keys() - set(marked):
            for place in rerun[holder]:
                del met[place]
    return met


def _key_document(order: int, job: NewJob) -> str:
    parts = [f'{{"ord":{order},"task":{documents.quote(job.task)}']
    if job.unique_key is not None:
        parts.append(f',"unique_key":{documents.quote(job.unique_key)}')
    if job.name is not None:
        parts.append(f',"name":{documents.quote(job.name)}')
    return "".join(parts) + "}"


def slices() -> Call[Slices]:
    """Find which lanes and tasks have pending work that no gate holds back."""
    return _single("slices", {}, rows.slices, is_read=True)


def claim(
    found: Slices, limit: int, lease: Lease, *, started: bool, most_arms: int = MAX_ARMS, now: datetime | None = None
) -> Call[list[Claimed]]:
    """Take up to `limit` pending jobs of these slices; `started` says they run at once and are not prefetched."""
    check_range("limit", limit, 1, MAX_CLAIM)
    check_text("worker", lease.worker, MAX_NAME)
    open_slices = found.open[:most_arms]
    params: dict[str, Any] = {
        "version": found.version,
        "limit": limit,
        "token": lease.token,
        "worker": lease.worker,
        "lease": lease.length,
        "started": started,
        "now": now,
    }
    arms = _padded(len(open_slices))
    # Padding with a slice that cannot exist keeps the number of different texts small, so that they stay prepared.
    for place, part in enumerate([*open_slices, *[_NO_SLICE] * (arms - len(open_slices))]):
        params[f"lane_{place}"] = part.lane
        params[f"task_{place}"] = part.task

    def steps() -> Steps[list[Claimed]]:
        return rows.claimed((yield Step("claim", params, arms)))

    return Call(steps, is_single=True)


_NO_SLICE = Slice("", "", 0, EPOCH)


def _padded(arms: int) -> int:
    return 1 << max(arms - 1, 0).bit_length()


def renew(leases: Sequence[tuple[int, int, datetime | None]], length: timedelta, now: datetime | None = None) -> Call[list[Held]]:
    """Extend (id, token, started_at) leases; what does not come back is lost."""
    batch = documents.array(documents.report(job_id, token, Run(started_at)) for job_id, token, started_at in leases)
    return _single("renew", {"leases": batch, "lease": length, "now": now}, rows.held, is_urgent=True)


def progress(
    job_id: int,
    token: int,
    *,
    count: int | None = None,
    cursor: str | None = None,
    message: str | None = None,
    now: datetime | None = None,
) -> Call[bool]:
    """Note how far a run has come; False when the lease is no longer ours."""
    if count is not None:
        check_range("count", count, 0, 2**63 - 1)
    params = {
        "id": job_id,
        "token": token,
        "count": count,
        "cursor": None if cursor is None else sanitise_text(cursor, MAX_CURSOR),
        "message": None if message is None else sanitise_text(message, MAX_TEXT),
        "now": now,
    }
    return _single("progress", params, bool)


def finish(
    endings: Sequence[Finish], entries: Sequence[Entry] | None = None, now: datetime | None = None
) -> Call[dict[int, JobState]]:
    """End runs, each guarded by its token; the answer has the accepted ones. `entries` are the endings as written."""
    return _single("finish", _finish_params(endings, entries, None, now), rows.finished, is_urgent=True)


def _finish_params(
    endings: Sequence[Finish], entries: Sequence[Entry] | None, expired_before: datetime | None, now: datetime | None
) -> dict[str, Any]:
    check_range("endings", len(endings), 1, documents.MAX_ROWS)
    return {
        "batch": documents.grouped(map(documents.finish, endings) if entries is None else entries),
        "expired_before": expired_before,
        "any_death": any(ending.fingerprint is not None for ending in endings),
        "any_recurring": any(ending.state == "scheduled" or ending.done_reason is not None for ending in endings),
        "now": now,
    }


def stop(runs: Sequence[tuple[int, int, Run]], now: datetime | None = None) -> Call[list[int]]:
    """Say of cancelled (id, token, run) that they have stopped."""
    return _single("stop", _stop_params(runs, None, now), rows.ids, is_urgent=True)


def _stop_params(runs: Sequence[tuple[int, int, Run]], expired_before: datetime | None, now: datetime | None) -> dict[str, Any]:
    batch = documents.array(documents.report(*run) for run in runs)
    return {"batch": batch, "expired_before": expired_before, "now": now}


def lapsed(limit: int, now: datetime | None = None) -> Call[list[Lapsed]]:
    """Read leases past their end."""
    check_range("limit", limit, 1, documents.MAX_ROWS)
    return _single("lapsed", {"limit": limit, "now": now}, rows.lapsed, is_read=True)


def reclaim(
    limit: int,
    rng: Random,
    profiles: Mapping[str, Profile],
    contact: Contact | None = None,
    *,
    only: int | None = None,
    now: datetime | None = None,
) -> Call[list[int]]:
    """Take back what nobody renewed, if contact is steady.

    Contact is noted inside the transaction, and only leases that had ended by then are written: however long this process is
    held up in between, it cannot take a job whose worker renewed meanwhile, or could not.
    """
    check_range("limit", limit, 1, documents.MAX_ROWS)

    def steps() -> Steps[list[int]]:
        [[moment]] = yield Step("contact", {"now": now})
        if contact is not None and not contact.touch(moment):
            return []
        found = rows.lapsed((yield Step("lapsed", {"limit": limit, "now": moment})))
        ended = [lease for lease in found if only in {None, lease.job.id}]
        endings = [_reclaimed(lease, rng, profiles, moment) for lease in ended if not lease.is_cancelled]
        stops = [(lease.job.id, lease.job.token, NO_RUN) for lease in ended if lease.is_cancelled]
        taken: list[int] = []
        if endings:
            taken += rows.finished((yield Step("reclaim", _finish_params(endings, None, moment, now))))
        if stops:
            taken += rows.ids((yield Step("stop", _stop_params(stops, moment, now))))
        return sorted(taken)

    return Call(steps)


def _reclaimed(lease: Lapsed, rng: Random, profiles: Mapping[str, Profile], now: datetime) -> Finish:
    outcome = LeaseExpired(has_started=lease.started_at is not None, is_stopping=lease.is_stopping)
    return decide(lease.job, outcome, Run(started_at=lease.started_at), now=now, rng=rng, profiles=profiles)


def promote(limit: int, now: datetime | None = None) -> Call[Promoted]:
    """Make due jobs claimable."""
    check_range("limit", limit, 1, 10_000)
    return _single("promote", {"limit": limit, "now": now}, rows.promoted)


def due_templates(limit: int, now: datetime | None = None) -> Call[list[Job]]:
    """Read the templates that are due."""
    check_range("limit", limit, 1, documents.MAX_ROWS)
    return _single("due_templates", {"limit": limit, "now": now}, rows.jobs, is_read=True)


def spawn(template_id: int, seen_at: datetime, now: datetime | None = None) -> Call[Enqueued | None]:
    """Enqueue a template's job and move it to its next time; None when another process did."""

    def steps() -> Steps[Enqueued | None]:
        ids = documents.numbers([template_id])
        yield Step("lock_jobs", {"ids": ids})
        [[moment]] = yield Step("clock", {"now": now})
        for template in rows.jobs((yield Step("get_jobs", {"ids": ids}))):
            if template.run_at == seen_at and template.state is JobState.SCHEDULED and template.recurrence is not None:
                next_at = _next_of(template, template.recurrence, moment)
                params = {"id": template_id, "seen_at": seen_at, "next_at": next_at, "now": now}
                if (yield Step("advance_template", params)):
                    [child] = yield from enqueue([_child(template)], now).steps()
                    return child
        return None

    return Call(steps)


def _next_of(template: Job, recurrence: Recurrence, now: datetime) -> datetime | None:
    # Counted from the slot, not from the moment it is served: a late tick must not push every later one.
    next_at = replace(recurrence, fixed_rate=True).next(template.slot_at, now)
    return None if recurrence.has_ended(next_at, template.completed_runs + 1) else next_at


def _child(template: Job) -> NewJob:
    return NewJob(
        task=template.task,
        lane=template.lane,
        payload=template.payload,
        priority=template.base_priority,
        max_attempts=template.max_attempts,
        retry=RetrySpec.decode(template.retry),
        timeout=None if template.timeout_us is None else timedelta(microseconds=template.timeout_us),
        # By the time it fires: a run by hand must not take the key of the slot that is still to come.
        unique_key=template.child_key or f"{template.id}@{documents.microseconds(template.run_at)}",
        subject=template.subject,
        correlation_id=template.correlation_id,
        parent_id=template.id,
        metadata=template.metadata,
        collection=template.collection,
        item_key=template.item_key,
        target_count=template.target_count,
        created_by=f"scheduler:{template.name or template.id}"[:200],
    )


def _move(move: str, query: str, ids: Sequence[int], params: Mapping[str, Any]) -> Call[Moved]:
    """Make an operator move, answered with the rows its own statement left."""
    listed = documents.numbers(_possible(ids))

    def steps() -> Steps[Moved]:
        changed = set(rows.ids((yield Step(query, {"ids": listed, **params}))))
        return _moved(move, ids, changed, rows.jobs((yield Step("get_jobs", {"ids": listed}))))

    return Call(steps)


def _possible(ids: Sequence[int]) -> list[int]:
    """Leave out numbers that no job can have; they come back as missing."""
    return [job_id for job_id in ids if 0 < job_id <= MAX_JOB]


def _moved(move: str, ids: Sequence[int], changed: set[int], left: Sequence[Job]) -> Moved:
    known = {job.id for job in left}
    return Moved(
        move,
        tuple(job for job in left if job.id in changed),
        tuple(job for job in left if job.id not in changed),
        tuple(job_id for job_id in ids if job_id not in known),
    )


def cancel(ids: Sequence[int], reason: str | None = None, now: datetime | None = None) -> Call[Moved]:
    """Cancel jobs at once; running ones keep their lease until they have stopped."""
    return _move("cancel", "cancel", ids, {"reason": None if reason is None else sanitise_text(reason, MAX_TEXT), "now": now})


def stop_run(ids: Sequence[int], now: datetime | None = None) -> Call[Moved]:
    """Ask running recurring jobs to end this run; their cadence goes on."""
    return _move("stop", "stop_run", ids, {"now": now})


def pause(ids: Sequence[int], now: datetime | None = None) -> Call[Moved]:
    """Hold waiting jobs until they are resumed."""
    return _move("pause", "pause", ids, {"now": now})


def resume(ids: Sequence[int], now: datetime | None = None) -> Call[Moved]:
    """Let paused jobs go on; recurring ones count anew from now."""

    def steps() -> Steps[Moved]:
        listed = documents.numbers(_possible(ids))
        # Locked first: the next time is computed from a cadence that nobody may change meanwhile.
        yield Step("lock_jobs", {"ids": listed})
        [[moment]] = yield Step("clock", {"now": now})
        found = rows.jobs((yield Step("get_jobs", {"ids": listed})))
        batch = documents.array(_resumed(job, moment) for job in found if job.state is JobState.PAUSED)
        changed = set(rows.ids((yield Step("resume", {"jobs": batch, "now": now}))))
        return _moved("resume", ids, changed, rows.jobs((yield Step("get_jobs", {"ids": listed}))))

    return Call(steps)


def _resumed(job: Job, now: datetime) -> str:
    try:
        next_at = None if job.recurrence is None else job.recurrence.first(now)
    except InvalidInput:
        # A cadence nobody can read keeps its time; the run that follows says what is wrong.
        next_at = None
    moved = "" if next_at is None else f',"next_us":{documents.microseconds(next_at)}'
    return f'{{"id":{job.id}{moved}}}'


def disable(ids: Sequence[int], now: datetime | None = None) -> Call[Moved]:
    """Stop jobs from running by themselves; a running one finishes its run first."""
    return _move("disable", "disable", ids, {"now": now})


def enable(ids: Sequence[int], now: datetime | None = None) -> Call[Moved]:
    """Undo `disable`; the next time is kept, so an overdue job is due at once."""
    return _move("enable", "enable", ids, {"now": now})


def run_now(ids: Sequence[int], now: datetime | None = None) -> Call[Moved]:
    """Run waiting jobs now, running ones once more after their run."""
    return _move("run now", "run_now", ids, {"now": now})


def retry(ids: Sequence[int], now: datetime | None = None) -> Call[Moved]:
    """Start failed jobs afresh; one whose unique key another job holds is refused."""

    def steps() -> Steps[Moved]:
        moved = yield from _move("retry", "retry", ids, {"now": now}).steps()
        if len(ids) == 1 and moved.refused and moved.refused[0].state is JobState.FAILED:
            for job_id, holder in (yield Step("holders_of", {"ids": documents.numbers(ids)})):
                raise SlotTaken(job_id, holder)
        return moved

    return Call(steps)


def edit(job_id: int, changes: Edit, now: datetime | None = None) -> Call[Moved]:
    """Change a job; only a new cadence moves its next run."""
    params = {
        "id": job_id,
        "payload": changes.payload,
        "metadata": changes.metadata,
        "description": changes.description,
        "priority": changes.priority,
        "max_attempts": changes.max_attempts,
        "retry": None if changes.retry is None else changes.retry.encode(),
        "timeout_us": None if changes.timeout is None else documents.microseconds(changes.timeout),
        "cadence": None if changes.recurrence is None else changes.recurrence.encode(),
        "next_at": changes.next_at,
        "now": now,
    }

    def steps() -> Steps[Moved]:
        changed = set(rows.ids((yield Step("edit", params))))
        moved = _moved("edit", [job_id], changed, rows.jobs((yield Step("get_jobs", {"ids": f"[{job_id}]"}))))
        if moved.refused:
            _explain_refusal(moved.refused[0], changes)
        return moved

    return Call(steps)


def _explain_refusal(job: Job, changes: Edit) -> None:
    if job.state in {JobState.COMPLETED, JobState.CANCELLED}:
        return
    if changes.recurrence is not None and job.cadence is None:
        raise InvalidInput("cadence", str(changes.recurrence.cadence), f"job {job.id} is not recurring")
    raise InvalidInput("max_attempts", changes.max_attempts, f"job {job.id} has already used {job.attempt} attempts")


def get_jobs(ids: Sequence[int]) -> Call[list[Job]]:
    """Read jobs by number; unknown ones are left out."""
    return _single("get_jobs", {"ids": documents.numbers(_possible(ids))}, rows.jobs, is_read=True)


def list_jobs(
    *, state: JobState | None = None, task: str | None = None, after: int = 0, limit: int = MAX_LIST
) -> Call[list[Job]]:
    """Read jobs in number order, page by page."""
    check_range("limit", limit, 1, MAX_LIST)
    params = {"state": state, "task": task, "after": after, "limit": limit}
    return _single("list_jobs", params, rows.jobs, is_read=True)


def list_executions(job_id: int, *, before: int = 2**31 - 1, limit: int = MAX_LIST) -> Call[list[Execution]]:
    """Read a job's ended runs, newest first."""
    check_range("limit", limit, 1, MAX_LIST)
    params = {"job_id": job_id, "before": before, "limit": limit}
    return _single("list_executions", params, rows.executions, is_read=True)


def list_dead_letters(job_id: int) -> Call[list[DeadLetter]]:
    """Read a job's dead letters, oldest first."""
    return _single("list_dead_letters", {"job_id": job_id}, rows.dead_letters, is_read=True)


def count_jobs() -> Call[list[Count]]:
    """Count jobs by task, lane, state and reason without reading the jobs."""
    return _single("count_jobs", {}, rows.counts, is_read=True)


def fold_counts(limit: int) -> Call[int]:
    """Add count deltas to the counts they belong to."""
    check_range("limit", limit, 1, 1_000_000)
    return _single("fold_counts", {"limit": limit}, lambda found: found[0][0])
