"""What the rules of alerts see: the values that are beyond a threshold, or still near it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from windlass.core.alert_rules import BEFORE, GONE_FOR, IN_LANE, LEAST_RUNS, LEAST_SLOWER, WINDOW, AlertRule
from windlass.core.breaker import BreakerState
from windlass.core.chore import Chore
from windlass.core.durations import in_words
from windlass.core.insights import Present
from windlass.core.job import JobState
from windlass.core.pool import FAST_LANE
from windlass.core.record import record
from windlass.core.unserved import find_unserved
from windlass.core.worker import PULLING, LongRun, WorkerRecord

CHORE = "alerts"
"""The chore that looks; readers of the alerts see whether it runs."""
_LEAST_RECURRING = 5
_MOST_MESSAGE = 500


class TaskRuns(NamedTuple):
    """The runs of a task that ended within the window, and those of the hour before it."""

    task: str
    completed: int
    failed: int
    ended: int
    duration_ms: int
    ended_before: int
    duration_before_ms: int


class RecurringRuns(NamedTuple):
    """How the last runs of a recurring job ended."""

    id: int
    name: str | None
    task: str
    completed: int
    failed: int


class Machine(NamedTuple):
    """Facts of the machine that evaluates; None where they are unknown."""

    now: datetime | None = None
    disk_used: float | None = None


@record(kw_only=True)
class Facts:
    """What the rules look at, read in one transaction."""

    present: Present
    workers: Sequence[WorkerRecord]
    chores: Sequence[Chore]
    tasks: Sequence[TaskRuns]
    long_runs: Sequence[LongRun]
    recurring: Sequence[RecurringRuns]
    dead: int
    """How many jobs failed for good within the window."""
    lost: int
    """How many runs ended with a lost lease within the window."""
    machine: Machine


class Sign(NamedTuple):
    """A value that is beyond a rule's threshold, or still near it."""

    rule: str
    subject: str
    value: float
    message: str
    is_over: bool


class Seen(NamedTuple):
    """What a rule sees of one subject."""

    subject: str
    value: float
    message: str


def signs(facts: Facts, rules: Mapping[str, AlertRule]) -> list[Sign]:
    """List what holds now, and what is too near to a threshold to clear an alert, by rule and subject."""
    return [
        Sign(name, seen.subject, seen.value, seen.message[:_MOST_MESSAGE], rule.is_over(seen.value))
        for name, rule in rules.items()
        if rule.is_on
        for seen in sorted(_WATCHES[name](facts, rule))
        if rule.is_warm(seen.value)
    ]


def long(length: timedelta) -> str:
    """Write how long something lasted, in whole seconds."""
    return in_words(timedelta(seconds=int(length.total_seconds())) or timedelta(seconds=1))


def _percent(share: float) -> str:
    return f"{share * 100:.0f} %"


def _pending(facts: Facts, rule: AlertRule) -> Iterator[Seen]:
    jobs: Counter[str] = Counter()
    for one in facts.present.counts:
        if one.state is JobState.PENDING:
            jobs[one.lane] += one.jobs
    for lane, number in jobs.items():
        yield Seen(lane, number, f"{number} jobs are pending in lane {lane} (more than {rule.limit()})")


def _depth(facts: Facts, rule: AlertRule) -> Iterator[Seen]:
    number = sum(one.jobs for one in facts.present.counts if one.state is JobState.PENDING)
    yield Seen("", number, f"{number} jobs are pending in all lanes (more than {rule.limit()})")


def _error_rate(facts: Facts, _rule: AlertRule) -> Iterator[Seen]:
    for one in facts.tasks:
        total = one.completed + one.failed
        if total >= LEAST_RUNS:
            share = one.failed / total
            counted = f"{one.failed} of {total}, {_within()}"
            yield Seen(one.task, share, f"{_percent(share)} of the runs of {one.task} failed ({counted})")


def _within() -> str:
    return f"within {in_words(WINDOW)}"


def _failed_rate(facts: Facts, _rule: AlertRule) -> Iterator[Seen]:
    total = sum(one.completed for one in facts.tasks) + facts.dead
    if total >= LEAST_RUNS:
        share = facts.dead / total
        yield Seen("", share, f"{_percent(share)} of the jobs failed for good ({facts.dead} of {total}, {_within()})")


def _running(facts: Facts, _rule: AlertRule) -> Iterator[Seen]:
    for one in facts.long_runs:
        for_long = facts.present.age(one.started_at)
        message = f"job {one.id} ({one.task}) has been running for {long(for_long)} on {one.worker}"
        yield Seen(str(one.id), for_long.total_seconds(), message)


def _oldest_pending(facts: Facts, _rule: AlertRule) -> Iterator[Seen]:
    oldest: dict[str, datetime] = {}
    for (_, lane), since in facts.present.oldest.items():
        oldest[lane] = min(since, oldest.get(lane, since))
    for lane, since in oldest.items():
        waited = facts.present.age(since)
        yield Seen(lane, waited.total_seconds(), f"a job of lane {lane} has been due for {long(waited)}")


def _fast_pool(facts: Facts, _rule: AlertRule) -> Iterator[Seen]:
    for pool in facts.present.pools:
        if pool.lane == FAST_LANE and pool.slots:
            yield Seen("", pool.use, f"{pool.busy} of {pool.slots} slots of lane {FAST_LANE} are busy")


def _breaker(facts: Facts, _rule: AlertRule) -> Iterator[Seen]:
    for one in facts.present.breakers:
        if one.state is not BreakerState.CLOSED:
            state = one.state.value.replace("_", " ")
            yield Seen(one.name, 1, f"breaker {one.name} is {state}: its tasks wait")


def _schedule(facts: Facts, _rule: AlertRule) -> Iterator[Seen]:
    late = facts.present.lateness
    yield Seen("", late.total_seconds(), f"a scheduled job should have started {long(late)} ago")


def _success_rate(facts: Facts, _rule: AlertRule) -> Iterator[Seen]:
    for one in facts.recurring:
        total = one.completed + one.failed
        if total >= _LEAST_RECURRING:
            share = one.completed / total
            message = f"{one.completed} of the last {total} runs of {one.name or one.task} (job {one.id}) completed"
            yield Seen(str(one.id), share, message)


def _duration(facts: Facts, _rule: AlertRule) -> Iterator[Seen]:
    for one in facts.tasks:
        if one.ended < LEAST_RUNS or one.ended_before < LEAST_RUNS or not one.duration_before_ms:
            continue
        now, before = one.duration_ms / one.ended, one.duration_before_ms / one.ended_before
        # Runs of a few milliseconds take twice as long whenever the machine has other work.
        if timedelta(milliseconds=now - before) < LEAST_SLOWER:
            continue
        times = f"{_ms(now)} on average, {_ms(before)} in the {in_words(BEFORE)} before"
        yield Seen(one.task, now / before, f"runs of {one.task} take {now / before:.1f} times as long: {times}")


def _ms(milliseconds: float) -> str:
    return in_words(timedelta(milliseconds=round(milliseconds)))


def _lost_leases(facts: Facts, _rule: AlertRule) -> Iterator[Seen]:
    runs = "1 run" if facts.lost == 1 else f"{facts.lost} runs"
    yield Seen("", facts.lost, f"{runs} ended with a lost lease, {_within()}: a worker died or stood still")


def _unserved(facts: Facts, _rule: AlertRule) -> Iterator[Seen]:
    jobs: Counter[tuple[str, str]] = Counter()
    messages = {}
    for one in find_unserved(facts.present.counts, facts.workers):
        jobs[one.task, one.lane] += one.jobs
        messages[one.task, one.lane] = str(one._replace(jobs=jobs[one.task, one.lane]))
    for (task, lane), message in messages.items():
        yield Seen(f"{task}{IN_LANE}{lane}", 1, message)


def _upkeep(facts: Facts, _rule: AlertRule) -> Iterator[Seen]:
    for one in facts.chores:
        if one.paused_at is None and one.due_at is not None and one.name != CHORE:
            late = facts.present.age(one.due_at)
            yield Seen(one.name, late.total_seconds(), f"chore {one.name} has been due for {long(late)}, and no process does it")


def _chore_failing(facts: Facts, _rule: AlertRule) -> Iterator[Seen]:
    for one in facts.chores:
        if one.last_error is not None and one.paused_at is None and one.name != CHORE:
            yield Seen(one.name, 1, f"chore {one.name} fails: {one.last_error}")


def _worker_gone(facts: Facts, _rule: AlertRule) -> Iterator[Seen]:
    for one in facts.workers:
        silent = facts.present.age(one.seen_at)
        if one.stopped_at is None and one.kind != PULLING and silent <= GONE_FOR:
            where = f"{one.host}:{one.pid}"
            yield Seen(
                one.id, silent.total_seconds(), f"worker {where} ended without stopping in order, last seen {long(silent)} ago"
            )


def _clock(facts: Facts, _rule: AlertRule) -> Iterator[Seen]:
    if facts.machine.now is not None:
        off = abs(facts.machine.now - facts.present.at)
        yield Seen("", off.total_seconds(), f"the database's clock is {long(off)} off that of the machine that looks")


def _disk(facts: Facts, _rule: AlertRule) -> Iterator[Seen]:
    if facts.machine.disk_used is not None:
        yield Seen("", facts.machine.disk_used, f"the disk of the database's file is {_percent(facts.machine.disk_used)} full")


_WATCHES: Mapping[str, Callable[[Facts, AlertRule], Iterator[Seen]]] = {
    "pending": _pending,
    "depth": _depth,
    "error_rate": _error_rate,
    "failed_rate": _failed_rate,
    "running": _running,
    "oldest_pending": _oldest_pending,
    "fast_pool": _fast_pool,
    "breaker": _breaker,
    "schedule": _schedule,
    "success_rate": _success_rate,
    "duration": _duration,
    "lost_leases": _lost_leases,
    "unserved": _unserved,
    "upkeep": _upkeep,
    "chore_failing": _chore_failing,
    "worker_gone": _worker_gone,
    "clock": _clock,
    "disk": _disk,
}
