"""The verbs of the life of a job: enqueue, claim, renew, finish, reclaim."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from random import Random
from typing import Any, TypeVar

from windlass.core.cadence import EPOCH
from windlass.core.checks import check_range, check_text
from windlass.core.job import (
    MAX_NAME,
    MAX_TEXT,
    Claimed,
    Enqueued,
    Held,
    JobState,
    Lapsed,
    Lease,
    LikeJobs,
    NewJob,
    OnConflict,
    Slice,
    Slices,
    Stored,
)
from windlass.core.outcome import NO_RUN, Completed, Ending, Finish, LeaseExpired, Run, decide
from windlass.core.payload import sanitise_text
from windlass.core.predicted_row import predicted_row
from windlass.core.topic import Topic
from windlass.errors import DuplicateJob, StoreConflict
from windlass.store import batches, rows
from windlass.store.calls import wakes
from windlass.store.calls.call import Call, Means, Step, Steps, known, single
from windlass.store.calls.settings import current_profiles

T = TypeVar("T")

MAX_CLAIM = 1000
MAX_CURSOR = 65_536
ENQUEUE_ROWS = 1000
_LOOKS = 10
_RENEWALS_PER_LEASE = 4
_SHORTEST_RENEWAL = timedelta(seconds=1)


def clock() -> Call[datetime]:
    """Ask the database what time it is."""
    return single("clock", {}, lambda found: found[0][0], is_read=True, is_engine=True)


def identity() -> Call[str]:
    """Ask which set of tables this is."""
    return single("identity", {}, lambda found: found[0][0], is_read=True)


def enqueue(jobs: Sequence[NewJob]) -> Call[list[Enqueued]]:
    """Insert jobs, all or none; the answer has one entry for each, in order."""
    if not jobs:
        return known([])
    if isinstance(jobs, LikeJobs) and jobs.first.is_plain:
        return _enqueue_plain(jobs.first, jobs.payloads)
    jobs = list(jobs)
    if _is_uniform(jobs):
        return _enqueue_plain(jobs[0], [job.payload for job in jobs])
    told = partial(wakes.by_enqueue, jobs)
    if any(_waits_for_slot(job) for job in jobs):
        return Call(lambda means: _enqueue_recurring(jobs, means.rng), wakes=told)
    return Call(lambda _: _enqueue(jobs), is_single=_is_single(jobs), wakes=told)


def _enqueue_plain(first: NewJob, payloads: Sequence[str]) -> Call[list[Enqueued]]:
    """Insert jobs without a key: there is no holder to look for."""
    cuts = list(batches.cut([batches.plain_size(payload) for payload in payloads], ENQUEUE_ROWS))

    def steps(_: Means) -> Steps[list[Enqueued]]:
        enqueued: list[Enqueued] = []
        for part in cuts:
            found = yield _plain_insertion(first, payloads[part])
            enqueued += [Enqueued(job_id) for _, job_id, _ in sorted(found)]
        return enqueued

    return Call(steps, is_single=len(cuts) == 1, wakes=wakes.work, announces_work=True)


def enqueue_and_get(jobs: Sequence[NewJob]) -> Call[list[Stored]]:
    """Insert jobs and return their rows; only holders of a taken key have to be read."""
    if not jobs:
        return known([])

    def told(stored: list[Stored]) -> Collection[Topic]:
        return wakes.by_enqueue(jobs, [Enqueued(one.job.id, one.is_duplicate) for one in stored])

    if any(_waits_for_slot(job) for job in jobs):
        return Call(lambda means: _enqueue_recurring_and_get(jobs, means.rng), wakes=told)
    return Call(lambda _: _enqueue_and_get(jobs), is_single=_is_single(jobs), wakes=told, announces_work=_is_uniform(jobs))


def _is_single(jobs: Sequence[NewJob]) -> bool:
    has_keys = any(job.unique_key is not None or job.name is not None for job in jobs)
    return not has_keys and len(_cut(jobs)) == 1


def _cut(jobs: Sequence[NewJob]) -> list[slice]:
    return list(batches.cut([batches.job_size(job) for job in jobs], ENQUEUE_ROWS))


def _enqueue_recurring_and_get(jobs: Sequence[NewJob], rng: Random) -> Steps[list[Stored]]:
    timed = yield from _all_timed(jobs, rng)
    return (yield from _enqueue_and_get(timed))


def _enqueue_and_get(jobs: Sequence[NewJob]) -> Steps[list[Stored]]:
    made_at: dict[int, datetime] = {}
    enqueued = yield from _enqueue(jobs, made_at)
    holders = {one.id for place, one in enumerate(enqueued) if place not in made_at}
    found = rows.jobs((yield Step("get_jobs", {"ids": batches.numbers(holders)}))) if holders else []
    held = {job.id: job for job in found}
    return [
        Stored(predicted_row(jobs[place], one.id, made_at[place]) if place in made_at else held[one.id], one.is_duplicate)
        for place, one in enumerate(enqueued)
    ]


def _waits_for_slot(job: NewJob) -> bool:
    return job.recurrence is not None and job.run_at is None and job.delay is None


def _enqueue_recurring(jobs: Sequence[NewJob], rng: Random) -> Steps[list[Enqueued]]:
    timed = yield from _all_timed(jobs, rng)
    return (yield from _enqueue(timed))


def _all_timed(jobs: Sequence[NewJob], rng: Random) -> Steps[list[NewJob]]:
    """Set the first slot of recurring jobs without a time, counted from the database's clock."""
    [[moment]] = yield Step("clock", {})
    return [_timed(job, moment, rng) if _waits_for_slot(job) else job for job in jobs]


def _timed(job: NewJob, moment: datetime, rng: Random) -> NewJob:
    rule = job.recurrence
    if rule is None:
        return job
    slot_at = rule.first(moment)
    return replace(job, run_at=rule.run_time(slot_at, rng), slot_at=slot_at)


def _enqueue(jobs: Sequence[NewJob], made_at: dict[int, datetime] | None = None) -> Steps[list[Enqueued]]:
    """Insert, and where that fails look for the holder, until each job has one or the other; notes when which was made."""
    found: dict[int, Enqueued] = {}
    waiting: Sequence[int] = range(len(jobs))
    for _ in range(_LOOKS):
        found.update((yield from _insert(waiting, jobs, made_at)))
        waiting = [place for place in waiting if place not in found]
        if waiting:
            found.update((yield from _meet_holders(jobs, waiting)))
            waiting = [place for place in waiting if place not in found]
        if not waiting:
            return [found[place] for place in range(len(jobs))]
    taken = jobs[waiting[0]]
    raise StoreConflict(f"task {taken.task!r}: the holder of unique key {taken.unique_key or taken.name!r} stays invisible")


def _insert(places: Sequence[int], jobs: Sequence[NewJob], made_at: dict[int, datetime] | None) -> Steps[dict[int, Enqueued]]:
    inserted: dict[int, Enqueued] = {}
    ordered = [jobs[place] for place in places]
    for cut in _cut(ordered):
        part = places[cut]
        for place, job_id, moment in (yield _insertion(ordered[cut])):
            inserted[part[place]] = Enqueued(job_id)
            if made_at is not None:
                made_at[part[place]] = moment
    return inserted


def _insertion(jobs: Sequence[NewJob]) -> Step:
    """Describe how to insert some jobs: many plain ones of one kind by the fast statement, which no key can get in the way of."""
    if not _is_uniform(jobs):
        return Step("insert_jobs", {"jobs": batches.in_order(batches.new_job(job) for job in jobs)})
    return _plain_insertion(jobs[0], [job.payload for job in jobs])


def _plain_insertion(first: NewJob, payloads: Sequence[str]) -> Step:
    shared = {"task": first.task, "lane": first.lane, "priority": first.priority, "retry": first.retry.encode()}
    return Step("insert_plain", shared, columns={"payload": payloads})


def _is_uniform(jobs: Sequence[NewJob]) -> bool:
    first = jobs[0]
    kind = (first.task, first.lane, first.priority, first.retry)
    return all(job.is_plain and (job.task, job.lane, job.priority, job.retry) == kind for job in jobs)


def _meet_holders(jobs: Sequence[NewJob], places: Sequence[int]) -> Steps[dict[int, Enqueued]]:
    """Do what each job asked for in case its key is taken."""
    keys = batches.array(_key_document(order, jobs[place]) for order, place in enumerate(places))
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
                due = batches.when(job.run_at, job.delay)
                replaced[holder] = f'{{"id":{holder},"payload":{job.payload},"priority":{job.priority}{due}}}'
            case OnConflict.RERUN if state is JobState.RUNNING:
                rerun.setdefault(holder, []).append(place)
    met = {place: Enqueued(holder, is_duplicate=True) for place, (holder, _) in holders.items()}
    if replaced:
        # In the order of their numbers: two calls that change the same jobs in different order would wait for each other.
        yield Step("lock_jobs", {"ids": batches.numbers(sorted({*replaced, *rerun}))})
        yield Step("replace_waiting", {"jobs": batches.array(replaced.values())})
    if rerun:
        marked = rows.ids((yield Step("rerun_holders", {"ids": batches.numbers(rerun)})))
        # A holder that ended between the look and the mark will not run again: those that asked for it try anew.
        for holder in rerun.keys() - set(marked):
            for place in rerun[holder]:
                del met[place]
    return met


def _key_document(order: int, job: NewJob) -> str:
    parts = [f'{{"ord":{order},"task":{batches.quote(job.task)}']
    if job.unique_key is not None:
        parts.append(f',"unique_key":{batches.quote(job.unique_key)}')
    if job.name is not None:
        parts.append(f',"name":{batches.quote(job.name)}')
    return "".join(parts) + "}"


def slices() -> Call[Slices]:
    """Find which lanes and tasks have pending work that no gate holds back."""
    return single("slices", {}, rows.slices, is_read=True, is_engine=True)


def claim(found: Slices, limit: int, lease: Lease, *, started: bool = True) -> Call[list[Claimed]]:
    """Take up to `limit` pending jobs of these slices; with `started` they are marked as started."""
    return _claim("claim", found.version, found.claimable, limit=limit, lease=lease, started=started)


def claim_suspects(found: Slices, limit: int, lease: Lease) -> Call[list[Claimed]]:
    """Take up to `limit` jobs whose last run ended in a lost lease, and start them."""
    if not found.claimable_suspects:
        return known([])
    return _claim("claim_suspect", found.version, found.claimable_suspects, limit=limit, lease=lease)


def claim_any(found: Slices, lease: Lease) -> Call[Claimed | None]:
    """Take the first job of `found.open`, suspect or not, and start it."""
    claims = _claim("claim_any", found.version, found.claimable, limit=1, lease=lease)

    def steps(means: Means) -> Steps[Claimed | None]:
        taken = yield from claims.steps(means)
        return taken[0] if taken else None

    return Call(steps, is_single=True, is_engine=True)


def _claim(
    query: str, version: int, slices: Sequence[Slice], *, limit: int, lease: Lease, started: bool = True
) -> Call[list[Claimed]]:
    check_range("limit", limit, 1, MAX_CLAIM)
    check_text("worker", lease.worker, MAX_NAME)

    def steps(means: Means) -> Steps[list[Claimed]]:
        parts = slices[: means.most_arms]
        params: dict[str, Any] = {
            "version": version,
            "limit": limit,
            "token": lease.token,
            "worker": lease.worker,
            "lease": lease.length,
            "started": started,
        }
        arms = padded(len(parts))
        # Padding with a slice that cannot exist keeps the number of different texts small, so that they stay prepared.
        for place, part in enumerate([*parts, *[_NO_SLICE] * (arms - len(parts))]):
            params[f"lane_{place}"], params[f"task_{place}"] = part.lane, part.task
            params[f"priority_{place}"], params[f"run_at_{place}"] = part.priority, part.run_at
        return rows.taken((yield Step(query, params, arms)), lease)

    return Call(steps, is_single=True, is_engine=True)


_NO_SLICE = Slice("", "", 0, EPOCH)


def padded(arms: int) -> int:
    """Round up to a power of two, so that few texts are prepared."""
    return 1 << max(arms - 1, 0).bit_length()


def renew(leases: Sequence[tuple[int, int, datetime | None]], length: timedelta) -> Call[list[Held]]:
    """Extend (id, token, started_at) leases; what does not come back is lost."""
    batch = batches.array(batches.report(job_id, token, Run(started_at)) for job_id, token, started_at in leases)
    params = {"leases": batch, "lease": length}
    return single("renew", params, rows.held, is_urgent=True, timeout=_renewal_timeout(length))


def vouch(leases: Sequence[Held], length: timedelta) -> Call[dict[tuple[int, int], datetime]]:
    """Extend leases whose rows another transaction holds; returns the new ends of those that are not being reclaimed."""
    batch = batches.array(batches.report(held.id, held.token, NO_RUN) for held in leases)
    params = {"leases": batch, "lease": length}

    def decode(found: Sequence[rows.Row]) -> dict[tuple[int, int], datetime]:
        return {(job_id, token): until for job_id, token, until in found}

    return single("vouch", params, decode, is_urgent=True, timeout=_renewal_timeout(length))


def _renewal_timeout(length: timedelta) -> timedelta:
    """Give a renewal up early enough that another one can follow: else one dead connection costs a worker its leases."""
    return max(length / _RENEWALS_PER_LEASE, _SHORTEST_RENEWAL)


def progress(
    job_id: int, token: int, *, count: int | None = None, cursor: str | None = None, message: str | None = None
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
    }
    return single("progress", params, bool)


def record_logs(logs: Sequence[tuple[int, int, str]]) -> Call[list[int]]:
    """Write what runs (id, token, lines) have logged so far; returns the jobs whose lease still stands."""
    batch = batches.array(batches.report(job_id, token, Run(log_excerpt=lines)) for job_id, token, lines in logs)
    return single("record_logs", {"logs": batch}, rows.ids, timeout=_SHORTEST_RENEWAL)


def prune_logs(*, limit: int = 1000) -> Call[int]:
    """Delete what runs had logged that hold their jobs no longer; returns how many."""
    check_range("limit", limit, 1, 10_000)
    return single("prune_logs", {"limit": limit}, len)


def finish(endings: Sequence[Ending]) -> Call[dict[int, JobState]]:
    """End runs, each guarded by its token; the answer has the accepted ones."""
    check_range("endings", len(endings), 1, batches.MAX_ROWS)
    completed = [ending for ending in endings if isinstance(ending, Completed)]
    # They are of one worker, unless a caller finishes for several.
    completed = [ending for ending in completed if ending.job.worker == completed[0].job.worker]
    # Endings are independent of each other: another statement for the few that the first did not take needs no transaction.
    is_single = not completed or len(completed) == len(endings)
    return Call(lambda _: _finish(endings, completed), is_single=is_single, is_urgent=True, wakes=_by_states)


def _by_states(left: Mapping[int, JobState]) -> Collection[Topic]:
    return wakes.by_states(left.values())


def _finish(endings: Sequence[Ending], completed: Sequence[Completed]) -> Steps[dict[int, JobState]]:
    """End what needs no decision by the fast statement, and the rest, also what the fast one left, by the general one."""
    ended = (yield from _complete(completed)) if completed else []
    accepted = dict.fromkeys(ended, JobState.COMPLETED)
    rest = [ending.decided() for ending in endings if ending.id not in accepted]
    if rest:
        accepted |= rows.finished((yield Step("finish", finish_params(rest))))
    return accepted


def _complete(endings: Sequence[Completed]) -> Steps[Sequence[int]]:
    """End runs with nothing to decide; returns the jobs that were, by this statement or by one whose answer was lost."""
    columns = batches.completed(endings)
    [[ended]] = yield Step("complete", {"worker": endings[0].job.worker}, columns=columns)
    if ended == len(endings):
        return columns["id"]
    runs = {"id": columns["id"], "token": columns["token"]}
    return rows.ids((yield Step("completed_runs", {}, columns=runs)))


def finish_params(endings: Sequence[Finish], expired_before: datetime | None = None) -> dict[str, Any]:
    """Write endings as `finish` and `reclaim` take them."""
    check_range("endings", len(endings), 1, batches.MAX_ROWS)
    return {
        "batch": batches.grouped(map(batches.finish, endings)),
        "expired_before": expired_before,
        "any_death": any(ending.fingerprint is not None for ending in endings),
        "any_recurring": any(ending.state == "scheduled" or ending.done_reason is not None for ending in endings),
    }


def locked_jobs(ids: Sequence[int]) -> Call[set[int]]:
    """Find which of these jobs another transaction holds at this moment."""
    return single("locked_jobs", {"ids": batches.numbers(ids)}, lambda found: set(rows.ids(found)), is_urgent=True)


def stop(runs: Sequence[tuple[int, int, Run]]) -> Call[list[int]]:
    """Report that cancelled runs (id, token, run) have stopped."""
    return single("stop", stop_params(runs, None), rows.ids, is_urgent=True)


def stop_params(runs: Sequence[tuple[int, int, Run]], expired_before: datetime | None) -> dict[str, Any]:
    """Write stopped runs as `stop` takes them."""
    batch = batches.array(batches.report(*run) for run in runs)
    return {"batch": batch, "expired_before": expired_before}


def lapsed(limit: int = batches.MAX_ROWS) -> Call[list[Lapsed]]:
    """Read leases past their end."""
    check_range("limit", limit, 1, batches.MAX_ROWS)
    return single("lapsed", {"limit": limit, "only_gone": False}, rows.lapsed, is_read=True, is_engine=True)


def contact() -> Call[datetime]:
    """Write to the database; returns its time after that. Alone in its transaction: a lock on the row blocks every process."""
    return single("contact", {}, lambda found: found[0][0], is_engine=True)


def reclaim(limit: int, moment: datetime, *, is_steady: bool = True, only: int | None = None) -> Call[list[int]]:
    """Take back leases that had ended when contact was made, at `moment`, and those of workers that are gone.

    Only leases that had ended by then are written: however long this process is held up in between, it cannot take a job whose
    worker renewed meanwhile, or could not.
    """
    check_range("limit", limit, 1, batches.MAX_ROWS)

    def steps(means: Means) -> Steps[list[int]]:
        found = rows.lapsed((yield Step("lapsed", {"limit": limit, "only_gone": not is_steady, "now": moment})))
        ended = [lease for lease in found if only in {None, lease.job.id}]
        expired_before = moment if is_steady else EPOCH
        return sorted((yield from end_leases(ended, means, moment, expired_before=expired_before)))

    return Call(steps, is_engine=True, wakes=wakes.by_reclaim)


def end_leases(leases: Sequence[Lapsed], means: Means, moment: datetime, *, expired_before: datetime | None) -> Steps[list[int]]:
    """Take leases back: a run is decided as lost, a cancelled one as stopped. Returns the jobs that were still held."""
    current = means._replace(profiles=(yield from current_profiles((lease.job for lease in leases), means.profiles)))
    taken: list[int] = []
    for part in parts(leases):
        endings = [_reclaimed(lease, current, moment) for lease in part if not lease.is_cancelled]
        stops = [(lease.job.id, lease.job.token, Run(log_excerpt=lease.log_excerpt)) for lease in part if lease.is_cancelled]
        if endings:
            taken += rows.finished((yield Step("reclaim", finish_params(endings, expired_before))))
        if stops:
            taken += rows.ids((yield Step("stop", stop_params(stops, expired_before))))
    return taken


def parts(items: Sequence[T]) -> Iterator[Sequence[T]]:
    """Cut what one call was asked for into what one statement takes."""
    return (items[start : start + batches.MAX_ROWS] for start in range(0, len(items), batches.MAX_ROWS))


def _reclaimed(lease: Lapsed, means: Means, now: datetime) -> Finish:
    outcome = LeaseExpired(has_started=lease.started_at is not None, is_stopping=lease.is_stopping)
    run = Run(started_at=lease.started_at, log_excerpt=lease.log_excerpt)
    return decide(lease.job, outcome, run, now=now, rng=means.rng, profiles=means.profiles)
