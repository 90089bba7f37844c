"""One look at every rule of alerts: what is raised and cleared is written with the jobs that send it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime, timedelta

from windlass.core.alert_rules import BEFORE, WINDOW, AlertRule
from windlass.core.alert_signs import Facts, Machine, RecurringRuns, TaskRuns, signs
from windlass.core.alerts import MOST_SUBJECTS, Alert, AlertMove, MoveKind, Notice, ShownAlert, show, step
from windlass.core.job import NewJob
from windlass.core.record import record
from windlass.core.topic import Topic
from windlass.core.worker import LongRun
from windlass.store.calls import chores, insights, work, workers
from windlass.store.calls.alerts import MOST_OPEN, read_alerts, read_silences
from windlass.store.calls.call import Call, Means, Step, Steps
from windlass.store.rows import SHAPES, Shape

_KEEP = timedelta(days=90)
_MOST_TASKS = 1000
_MOST_RECURRING = 500
_LAST_RUNS = 10
_MOST_DEAD = 10_000
_PRUNED = 100

SHAPES |= {
    **dict.fromkeys(("begin_alert", "move_alert"), Shape.of(Alert)),
    "mark_lost_leases": Shape((0,)),
    "prune_marks": Shape((0,)),
}

Notify = Callable[[Notice], Sequence[NewJob]]


def _no_notices(_notice: Notice) -> Sequence[NewJob]:
    return ()


@record
class Evaluation:
    """What one look changed."""

    raised: Sequence[ShownAlert]
    cleared: Sequence[ShownAlert]
    jobs: int
    """How many notification jobs were enqueued."""


def evaluate(rules: Mapping[str, AlertRule], machine: Machine | None = None, notify: Notify = _no_notices) -> Call[Evaluation]:
    """Look at every rule; alerts, and the jobs that `notify` makes of them, are written in the same transaction.

    Any number may look at once: each alert is raised and cleared once. What is silenced is written, and no notice is sent.
    """

    def steps(means: Means) -> Steps[Evaluation]:
        facts = yield from _facts(rules, machine or Machine(), means)
        known = read_alerts((yield Step("open_alerts", {"limit": MOST_OPEN})))
        silences = read_silences((yield Step("list_silences", {})))
        raised: list[ShownAlert] = []
        cleared: list[ShownAlert] = []
        for move in step(known, signs(facts, rules), facts.present.at, rules):
            changed = yield from _write(move)
            if changed is not None and move.kind is MoveKind.RAISE:
                raised.append(show(changed, silences))
            elif changed is not None and move.kind is MoveKind.CLEAR:
                cleared.append(show(changed, silences))
        told = [Notice(at=facts.present.at, alert=one, is_raised=one in raised) for one in (*raised, *cleared)]
        jobs = [job for notice in told if notice.alert.silence is None for job in notify(notice)]
        if jobs:
            yield from work.enqueue(jobs).steps(means)
        yield Step("prune_alerts", {"keep_for": _KEEP, "limit": _PRUNED})
        yield Step("prune_silences", {})
        return Evaluation(raised, cleared, len(jobs))

    return Call(steps, wakes=_woken, is_engine=True)


def _woken(found: Evaluation) -> Collection[Topic]:
    topics = {Topic.ALERTS} if found.raised or found.cleared else set()
    return topics | {Topic.WORK} if found.jobs else topics


def _write(move: AlertMove) -> Steps[Alert | None]:
    if move.kind is MoveKind.FORGET:
        yield Step("forget_alert", {"id": move.alert_id})
        return None
    own = {"message": move.message, "amount": move.value}
    if move.alert_id is None:
        is_raised = move.kind is MoveKind.RAISE
        found = yield Step("begin_alert", {"rule": move.rule, "subject": move.subject, "is_raised": is_raised, **own})
    else:
        found = yield Step("move_alert", {"id": move.alert_id, "move": move.kind.value, **own})
    return read_alerts(found)[0] if found else None


def _facts(rules: Mapping[str, AlertRule], machine: Machine, means: Means) -> Steps[Facts]:
    registered = yield from insights.read_registered()
    present = yield from insights.read_present(means, registered)
    since = present.at - WINDOW
    params = {"since": since, "after_at": since - BEFORE, "limit": _MOST_TASKS}
    running = rules["running"]
    almost = timedelta(seconds=running.threshold * (1 - running.slack))
    long_ones = {"older_than": almost, "limit": MOST_SUBJECTS, "most": workers.MAX_STARTED}
    return Facts(
        present=present,
        workers=registered,
        chores=(yield from chores.list_chores().steps(means)),
        tasks=[TaskRuns(*row) for row in (yield Step("alert_runs", params))],
        long_runs=[LongRun(*row) for row in (yield Step("long_runs", long_ones))],
        recurring=[RecurringRuns(*row) for row in (yield Step("recurring_runs", {"limit": _MOST_RECURRING, "most": _LAST_RUNS}))],
        dead=(yield Step("recent_deaths", {"since": since, "limit": _MOST_DEAD}))[0][0],
        lost=(yield from _lost(present.lost_leases, present.at)),
        machine=machine,
    )


def _lost(total: int, at: datetime) -> Steps[int]:
    """Return how many leases were lost within the window; a mark each minute keeps how many there were by then."""
    yield Step("prune_marks", {"since": at - WINDOW})
    yield Step("mark_lost_leases", {"at": at.replace(second=0, microsecond=0), "lost": total})
    found = yield Step("first_mark", {"since": at - WINDOW})
    return max(0, total - found[0][0]) if found else 0
