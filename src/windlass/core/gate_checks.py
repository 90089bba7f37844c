"""Checks one by one what stands between due jobs and a worker's slot."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from windlass.core.breaker import Breaker, BreakerState
from windlass.core.explanation import Check, Situation, counted, holds, lasting, moment, passes, typed
from windlass.core.fleet_facts import FleetFacts, LeaseGroup
from windlass.core.gate import ALL_LANES
from windlass.core.pool import PULL_LANE
from windlass.core.worker import WorkerRecord

_START = "windlass worker MODULE:APP"
_MOST_NAMED = 5


def check_lane(fleet: FleetFacts, lane: str) -> Check:
    """Check the pause of a lane."""
    pause = fleet.pauses.get(lane)
    if pause is None:
        return passes("lane", f"lane {lane} is open")
    by = f" by {pause.paused_by}" if pause.paused_by else ""
    since = f"since {moment(pause.paused_at)} ({lasting(fleet.now - pause.paused_at)}){by}"
    is_every = pause.name == ALL_LANES and lane != ALL_LANES
    what = f"every lane is paused, {lane} with them," if is_every else f"lane {lane} is paused"
    command = typed("lanes", "resume", *(["--all"] if pause.name == ALL_LANES else [lane]))
    return holds("lane", f"{what} {since}", Situation.LANE_PAUSED, command)


def check_task(fleet: FleetFacts, task: str) -> Check:
    """Check the pause of a task."""
    known = fleet.tasks.get(task)
    if known is None or known.paused_at is None:
        return passes("task", f"task {task} is open")
    by = f" by {known.paused_by}" if known.paused_by else ""
    reason = f"task {task} is paused since {moment(known.paused_at)} ({lasting(fleet.now - known.paused_at)}){by}"
    return holds("task", reason, Situation.TASK_PAUSED, typed("tasks", "resume", task))


def check_breaker(fleet: FleetFacts, task: str) -> Check:
    """Check the breaker that gates the claims of a task."""
    known = fleet.tasks.get(task)
    if known is None or known.breaker is None:
        return passes("breaker", f"no breaker gates task {task}")
    breaker = fleet.breakers.get(known.breaker)
    if breaker is None or breaker.state is BreakerState.CLOSED:
        return passes("breaker", f"breaker {known.breaker} is closed")
    command = typed("breakers", "reset", breaker.name)
    if breaker.state is BreakerState.HALF_OPEN:
        return holds("breaker", _probing(breaker), Situation.BREAKER_PROBING, command)
    return holds("breaker", _opened(breaker), Situation.BREAKER_OPEN, command)


def _opened(breaker: Breaker) -> str:
    since = "" if breaker.opened_at is None else f" since {moment(breaker.opened_at)}"
    why = "by an operator" if breaker.is_forced else f"after {counted(breaker.failures, 'failure')} in a row"
    if breaker.probe_at is None:
        return f"breaker {breaker.name} is open{since}, {why}, until it is reset"
    if breaker.is_due:
        return f"breaker {breaker.name} is open{since}, {why}; the next free slot tries it with one job"
    wait = lasting(breaker.probe_at - breaker.read_at)
    return f"breaker {breaker.name} is open{since}, {why}; it is tried with one job at {moment(breaker.probe_at)} (in {wait})"


def _probing(breaker: Breaker) -> str:
    if not breaker.is_probe_alive:
        return f"breaker {breaker.name} is half open and its probe is gone; the next free slot tries it with one job"
    probe = "a call" if breaker.probe.job_id is None else f"job {breaker.probe.job_id}"
    return f"breaker {breaker.name} is half open: {probe} tries it now, and the others wait for how that ends"


def check_workers(fleet: FleetFacts, lane: str, task: str) -> Iterator[Check]:
    """Check that a live worker has a task's code, and that one of those serves a lane."""
    if lane == PULL_LANE and not fleet.serving(lane, task):
        yield _check_pullers(fleet)
        return
    if not fleet.serving(lane, task) and (paused := fleet.paused(lane, task)):
        yield _all_paused(fleet, paused)
        return
    if not fleet.runners:
        yield _nobody(fleet)
        return
    if not fleet.with_code(task):
        yield _without_code(fleet, task)
        return
    able = [worker.id for worker in fleet.with_code(task)]
    yield passes("code", f"{_named(able)} {'has' if len(able) == 1 else 'have'} the code of task {task}")
    serving = [worker.id for worker in fleet.serving(lane, task)]
    if serving:
        yield passes("worker", f"{_named(serving)} {'serves' if len(serving) == 1 else 'serve'} lane {lane}")
        return
    yield _unserved(fleet, lane, task)


def _all_paused(fleet: FleetFacts, paused: list[WorkerRecord]) -> Check:
    first = min(paused, key=lambda worker: (worker.paused_at or fleet.now, worker.id))
    since = first.paused_at or fleet.now
    have = "has" if len(paused) == 1 else "have"
    by = f" by {first.paused_by}" if first.paused_by else ""
    reason = f"{_named([worker.id for worker in paused])} would run it and {have} been told to claim nothing"
    told = f"{reason}, since {moment(since)} ({lasting(fleet.now - since)}){by}"
    return holds("worker", told, Situation.WORKERS_PAUSED, typed("workers", "resume", first.id))


def _nobody(fleet: FleetFacts) -> Check:
    if fleet.pullers:
        return _only_pullers(fleet, "no live worker claims from the database")
    reason = "no worker is alive: none was seen within the last minute"
    return holds("worker", reason, Situation.NO_LIVE_WORKER, _START)


def _without_code(fleet: FleetFacts, task: str) -> Check:
    reason = f"none of {counted(len(fleet.runners), 'live worker')} has code for task {task}"
    known = fleet.tasks.get(task)
    if known is not None and known.is_declared:
        reason += f"; it was last declared at {moment(known.seen_at)}"
    if fleet.pullers:
        return _only_pullers(fleet, reason)
    return holds("code", reason, Situation.NO_WORKER_KNOWS_TASK, _START)


def _unserved(fleet: FleetFacts, lane: str, task: str) -> Check:
    reason = f"no live worker with the code of task {task} has slots for lane {lane}"
    if fleet.pullers:
        return _only_pullers(fleet, reason)
    command = f"{_START} --pools {typed(f'{lane}=2,*=5').removeprefix('windlass ')}"
    return holds("worker", reason, Situation.NO_WORKER_SERVES_LANE, command)


def _only_pullers(fleet: FleetFacts, reason: str) -> Check:
    pullers = _named([worker.id for worker in fleet.pullers])
    unknown = f"{pullers} asked for jobs over HTTP within the last minute; for which lanes and tasks is not recorded"
    return Check("worker", None, f"{reason}; {unknown}", Situation.WAITING_FOR_PULL_WORKER, typed("workers", "--online"))


def _check_pullers(fleet: FleetFacts) -> Check:
    if fleet.pullers:
        return _only_pullers(fleet, f"lane {PULL_LANE} is served over HTTP only")
    reason = f"lane {PULL_LANE} is served over HTTP only, and no pull worker has asked for jobs within the last minute"
    return holds("worker", reason, Situation.NO_WORKER_SERVES_LANE, typed("workers"))


def check_slots(fleet: FleetFacts, lane: str, task: str | None = None) -> Check | None:
    """Check that a worker that may take a job has a free slot; None where no slots are known."""
    found = fleet.capacities(lane, task)
    if not found:
        return None
    slots, free = sum(one.slots for one in found), sum(one.free for one in found)
    if free:
        return passes("slots", f"lane {lane} has {free} of {counted(slots, 'slot')} free")
    busy = fleet.busy_with([one.worker for one in found])
    are = f"the one slot for lane {lane} is" if slots == 1 else f"all {slots} slots for lane {lane} are"
    reason = f"{are} busy: {_busy(fleet, busy)}"
    return holds("slots", reason, Situation.POOL_FULL, typed("jobs", "--state", "running"))


def _busy(fleet: FleetFacts, leases: list[LeaseGroup]) -> str:
    runs: Counter[str] = Counter()
    for lease in leases:
        runs[lease.task] += lease.started
    parts = [f"{number} of {task}" for task, number in runs.most_common(_MOST_NAMED)]
    if len(runs) > _MOST_NAMED:
        parts.append(f"{len(runs) - _MOST_NAMED} other tasks")
    oldest = min((lease.oldest_started_at for lease in leases if lease.oldest_started_at is not None), default=None)
    since = "" if oldest is None else f", the oldest for {lasting(fleet.now - oldest)}"
    return f"{', '.join(parts)}{since}"


def check_upkeep(fleet: FleetFacts, chore: str) -> Check:
    """Check that due jobs are made claimable: some process does the upkeep, and the chore is not paused."""
    if chore in fleet.paused_chores:
        return holds("upkeep", f"the chore {chore} is paused", Situation.CHORE_PAUSED, typed("chores", "resume", chore))
    if fleet.is_upkept:
        return passes("upkeep", "some process does the upkeep")
    last = "no process has ever done any" if fleet.upkeep_at is None else f"the last was done at {moment(fleet.upkeep_at)}"
    reason = f"no process does the upkeep, which makes due jobs claimable: {last}"
    return holds("upkeep", reason, Situation.UPKEEP_NOT_RUNNING, typed("upkeep"))


def gates_of(fleet: FleetFacts, lane: str, task: str) -> list[Check]:
    """Check every gate between due jobs of a lane and task and a worker."""
    return [check_lane(fleet, lane), check_task(fleet, task), check_breaker(fleet, task), *check_workers(fleet, lane, task)]


def first_closed(checks: list[Check]) -> Check | None:
    """Return the first gate that holds back, or may."""
    return next((check for check in checks if check.passed is not True), None)


def _named(workers: list[str]) -> str:
    shown = ", ".join(workers[:_MOST_NAMED])
    more = f" and {len(workers) - _MOST_NAMED} more" if len(workers) > _MOST_NAMED else ""
    return f"{'worker' if len(workers) == 1 else 'workers'} {shown}{more}"
