"""Gathers what an explanation is made of, in one transaction."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from windlass.core.breaker import Breaker
from windlass.core.explain import explain_job
from windlass.core.explain_gate import GateFacts, explain_gate, parts_of
from windlass.core.explanation import Explanation
from windlass.core.fleet_facts import EndedRuns, FleetFacts, LanePause, LeaseGroup
from windlass.core.gate import ALL_LANES, GateKind
from windlass.core.job import CLOSED, RETRIED, Count, Execution, Job, JobState
from windlass.core.job_facts import LATELY, WATCHED, AlikeLetters, JobFacts, KeyHolder, NewestLetter, kind_of
from windlass.core.known_task import KnownTask
from windlass.core.record import record
from windlass.core.retry import most_attempts
from windlass.core.worker import WorkerRecord
from windlass.errors import InvalidInput, JobNotFound
from windlass.store import batches, rows
from windlass.store.calls.breakers import breaker_of
from windlass.store.calls.call import Call, Means, Step, Steps
from windlass.store.calls.move import possible
from windlass.store.calls.settings import current_profiles
from windlass.store.calls.workers import MAX_STARTED, MAX_WORKERS, OFFLINE_AFTER
from windlass.store.rows import SHAPES, Shape

_RUNS = 20
_MOST_TASKS = 10
"""Of how many tasks that come before a job the pace is measured: those with the most jobs."""
_A_DAY = timedelta(days=1)
_MICROSECOND = timedelta(microseconds=1)
_NO_RUNS = EndedRuns()

SHAPES |= {
    "leases_by_lane": Shape((6,)),
    "newest_letter": Shape((3,), (4,)),
    "alike_letters": Shape((2, 3)),
}


def explain(job_id: int) -> Call[Explanation]:
    """Explain why a job does not run, or why it ran when it did; raises JobNotFound."""

    def steps(means: Means) -> Steps[Explanation]:
        found = (yield Step("get_jobs", {"ids": batches.numbers([job_id])})) if possible([job_id]) else []
        if not found:
            raise JobNotFound(job_id)
        [job] = rows.jobs(found)
        return explain_job((yield from _job_facts(job, means)))

    return Call(steps, is_read=True)


def _job_facts(job: Job, means: Means) -> Steps[JobFacts]:
    fleet = yield from _fleet([job.lane], [job.task])
    profiles = yield from current_profiles([job], means.profiles)
    runs = rows.executions((yield Step("list_executions", _newest_runs(job.id))))
    queue = (yield from _queue(job, fleet)) if job.state is JobState.PENDING else _LaneQueue({}, {}, _NO_RUNS)
    death = yield from _death(job, runs, fleet.now)
    return JobFacts(
        fleet=fleet,
        job=job,
        most_attempts=most_attempts(job.max_attempts, job.retry, profiles),
        runs=runs,
        holder=(yield from _holder(job)),
        before=queue.before,
        lately=queue.lately,
        while_due=queue.while_due,
        letter=death.letter,
        alike=death.alike,
        since_failure=death.since,
    )


def _newest_runs(job_id: int) -> dict[str, int]:
    return {"job_id": job_id, "before": 2**31 - 1, "limit": _RUNS, "offset": 0, "depth": _RUNS}


def _fleet(lanes: Iterable[str], tasks: Iterable[str]) -> Steps[FleetFacts]:
    """Read gates, workers and upkeep, as far as these lanes and tasks hang on them."""
    [[now]] = yield Step("clock", {})
    workers = yield Step("list_workers", {"offline_after": OFFLINE_AFTER, "limit": MAX_WORKERS})
    leases = yield Step("leases_by_lane", {"limit": MAX_STARTED})
    chores = yield Step("list_chores", {})
    pauses: dict[str, LanePause] = {}
    for lane in dict.fromkeys(lanes):
        for name, paused_at, paused_by in (yield Step("get_lane", {"lane": lane})):
            if paused_at is not None:
                pauses[lane] = LanePause(name, paused_at, paused_by)
    known: dict[str, KnownTask] = {}
    for task in dict.fromkeys(tasks):
        for row in (yield Step("get_known_task", {"name": task})):
            known[task] = KnownTask(*row)
    return FleetFacts(
        now=now,
        workers=[worker for worker in (WorkerRecord(*row) for row in workers) if worker.is_online],
        leases=[LeaseGroup._make(row) for row in leases],
        pauses=pauses,
        tasks=known,
        breakers=(yield from _breakers({task.breaker for task in known.values() if task.breaker is not None})),
        upkeep_at=max((row[4] for row in chores if row[4] is not None), default=None),
        paused_chores=frozenset(row[0] for row in chores if row[3] is not None),
    )


def _breakers(names: Collection[str]) -> Steps[Mapping[str, Breaker]]:
    found: dict[str, Breaker] = {}
    for name in sorted(names):
        for row in (yield Step("get_breaker", {"name": name})):
            found[name] = breaker_of(row)
    return found


def _holder(job: Job) -> Steps[KeyHolder | None]:
    """Find another job that holds the key of this one, or of a template's jobs; a job that waits holds its own."""
    key = job.child_key if job.spawn else job.unique_key
    if key is None or (not job.spawn and job.state not in CLOSED):
        return None
    keys = batches.array([f'{{"ord":0,"task":{batches.quote(job.task)},"unique_key":{batches.quote(key)}}}'])
    found = [KeyHolder(row[1], JobState(row[2])) for row in (yield Step("find_holders", {"keys": keys})) if row[1] != job.id]
    return found[0] if found else None


class _LaneQueue(NamedTuple):
    before: Mapping[str, int]
    lately: Mapping[str, EndedRuns]
    while_due: EndedRuns


def _queue(job: Job, fleet: FleetFacts) -> Steps[_LaneQueue]:
    """Count what comes before a due job, and measure how fast that goes."""
    slices = rows.slices((yield Step("slices", {})))
    parts = slices.claimable_suspects if job.crashes else slices.claimable
    rivals = {part.task for part in parts if part.lane == job.lane and fleet.are_rivals(job.lane, job.task, part.task)}
    tasks = sorted(rivals | {job.task})
    params = {"lane": job.lane, "tasks": batches.array(map(batches.quote, tasks)), "priority": job.priority}
    query = "count_suspects_before" if job.crashes else "count_before"
    yield Step("only_by_index", {})
    counted = yield Step(query, {**params, "edge_at": job.run_at, "edge_id": job.id})
    before = {task: jobs for task, jobs in counted if jobs}
    measured = {job.task, *sorted(before, key=lambda task: -before[task])[:_MOST_TASKS]}
    lately: dict[str, EndedRuns] = {}
    while_due: list[EndedRuns] = []
    for task in sorted(measured):
        lately[task] = yield from _ended(task, fleet.now - LATELY)
        while_due.append((yield from _ended(task, max(job.run_at, fleet.now - WATCHED))))
    return _LaneQueue(before, lately, EndedRuns(*map(sum, zip(*while_due, strict=True))))


def _ended(task: str, since: datetime) -> Steps[EndedRuns]:
    [row] = yield Step("ended_runs", {"task": task, "since": since})
    return EndedRuns._make(row)


class _Death(NamedTuple):
    letter: NewestLetter | None = None
    alike: AlikeLetters | None = None
    since: EndedRuns = _NO_RUNS


def _death(job: Job, runs: Sequence[Execution], now: datetime) -> Steps[_Death]:
    """Read how others ended that failed as this job did; only where it has failed."""
    if job.state is not JobState.FAILED and job.wait_reason not in RETRIED:
        return _Death()
    found = (yield Step("newest_letter", {"job_id": job.id})) if job.state is JobState.FAILED else []
    letter = NewestLetter._make(found[0]) if found else None
    last = JobFacts(fleet=FleetFacts(now=now), job=job, most_attempts=1, runs=runs).last_failed
    kind = letter.fingerprint if letter is not None else kind_of(job.task, last)
    if kind is None:
        return _Death(letter)
    [row] = yield Step("alike_letters", {"fingerprint": kind, "task": job.task})
    alike = AlikeLetters._make(row)
    last_at = alike.last_at or job.last_error_at or job.updated_at
    # The minute of the failure itself has it among its runs.
    return _Death(letter, alike, (yield from _ended(job.task, max(last_at + _MICROSECOND, now - _A_DAY))))


def explain_lane(name: str) -> Call[Explanation]:
    """Explain why the jobs of a lane do or do not move."""
    GateKind.LANE.check(name)
    if name == ALL_LANES:
        raise InvalidInput("lane", name, "must be one lane; `windlass lanes` lists them")
    return _explain_gate(_Gate(GateKind.LANE, name))


def explain_task(name: str) -> Call[Explanation]:
    """Explain why the jobs of a task do or do not move."""
    GateKind.TASK.check(name)
    return _explain_gate(_Gate(GateKind.TASK, name))


@record
class _Gate:
    kind: GateKind
    name: str

    def has(self, count: Count) -> bool:
        return self.name == (count.lane if self.kind is GateKind.LANE else count.task)


def _explain_gate(gate: _Gate) -> Call[Explanation]:
    is_task = gate.kind is GateKind.TASK

    def steps(_: Means) -> Steps[Explanation]:
        counts = [count for count in rows.counts((yield Step("count_jobs", {}))) if gate.has(count)]
        parts = parts_of(counts)
        lanes, tasks = [part.lane for part in parts], [part.task for part in parts]
        fleet = yield from _fleet(lanes if is_task else [gate.name], [gate.name] if is_task else tasks)
        lately = (yield from _ended(gate.name, fleet.now - LATELY)) if is_task else _NO_RUNS
        return explain_gate(GateFacts(fleet=fleet, kind=gate.kind, name=gate.name, counts=counts, lately=lately))

    return Call(steps, is_read=True)
