"""What the callers of the model test wish for: jobs, outcomes, edits, waits."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from hypothesis import strategies as st

from tests.model.verdict import first_slot
from windlass.core.cadence import ByHandler, Cron, Every, Misfire, OnExhausted, Recurrence
from windlass.core.gate import GateKind
from windlass.core.job import Edit, JobState, NewJob, OnConflict, RunReason, UniqueScope
from windlass.core.outcome import Cancelled, Failure, Outcome, Raised, Released, Returned, Snoozed, Stopped
from windlass.core.report import Report
from windlass.core.retention import Retention
from windlass.core.retry import RetrySpec

START = datetime(2026, 1, 15, 10, 30, tzinfo=UTC)
LEASE = timedelta(seconds=20)


def seconds(number: float) -> timedelta:
    """Say a duration."""
    return timedelta(seconds=number)


# Without jitter, so that the model needs no dice.
RETRIES = {
    "task": RetrySpec(jitter=0.0),
    "interval": RetrySpec(profile="interval"),
    "own": RetrySpec(base=seconds(10), cap=seconds(15), jitter=0.0),
}
CADENCES = {
    "every": Recurrence(cadence=Every(seconds(60))),
    "twice": Recurrence(cadence=Every(seconds(45)), max_runs=2),
    "mortal": Recurrence(cadence=Every(seconds(60)), on_exhausted=OnExhausted.FAIL),
    "fixed": Recurrence(cadence=Every(seconds(40)), fixed_rate=True),
    "skipping": Recurrence(cadence=Every(seconds(30)), fixed_rate=True, misfire=Misfire.SKIP),
    "thorough": Recurrence(cadence=Every(seconds(30)), fixed_rate=True, misfire=Misfire.ALL, misfire_max=3),
    "ending": Recurrence(cadence=Every(seconds(90)), end_at=START + seconds(600)),
    "hourly": Recurrence(cadence=Cron("@hourly")),
    "by handler": Recurrence(cadence=ByHandler(seconds(120))),
    "thrice by handler": Recurrence(cadence=ByHandler(seconds(50)), max_runs=3),
}
WAITS = (None, None, None, seconds(0), seconds(5), seconds(70))


class Order(NamedTuple):
    """A job somebody wants."""

    task: str
    lane: str
    priority: int
    wait: timedelta | None
    max_attempts: int | None
    retry: str
    payload: int
    key: str | None = None
    scope: UniqueScope = UniqueScope.ACTIVE
    on_conflict: OnConflict = OnConflict.IGNORE
    rule: str | None = None
    spawn: bool = False
    name: str | None = None
    child_key: str | None = None

    def job(self, now: datetime) -> NewJob:
        """Spell it as a caller would at this moment."""
        rule = None if self.rule is None else CADENCES[self.rule]
        run_at = None if rule is None or self.wait is not None else first_slot(rule, now)
        return NewJob(
            task=self.task,
            lane=self.lane,
            payload=f'{{"n":{self.payload}}}',
            priority=self.priority,
            run_at=run_at,
            delay=self.wait,
            max_attempts=self.max_attempts,
            retry=RETRIES[self.retry],
            recurrence=rule,
            spawn=self.spawn,
            name=self.name,
            unique_key=self.key,
            unique_scope=self.scope,
            on_conflict=self.on_conflict,
            child_key=self.child_key,
            target_count=3 if self.payload % 4 == 0 else None,
        )


_common: dict[str, st.SearchStrategy[Any]] = {
    "task": st.sampled_from(("crawl", "mail")),
    "lane": st.sampled_from(("default", "fast")),
    "priority": st.sampled_from((0, 0, 5, -3)),
    "wait": st.sampled_from(WAITS),
    "max_attempts": st.sampled_from((None, 1, 2)),
    "retry": st.sampled_from(tuple(RETRIES)),
    "payload": st.integers(0, 99),
}
_keyed: dict[str, st.SearchStrategy[Any]] = {
    "key": st.sampled_from(("k", "q")),
    "scope": st.sampled_from(UniqueScope),
    "on_conflict": st.sampled_from(OnConflict),
}
_ruled: dict[str, st.SearchStrategy[Any]] = {"rule": st.sampled_from(tuple(CADENCES))}
# A job with a name and a key, held by two different jobs, has no holder that the rules would name: no job here has both.
_named: dict[str, st.SearchStrategy[Any]] = {
    "on_conflict": st.sampled_from(OnConflict),
    "spawn": st.booleans(),
    "name": st.sampled_from((None, "nightly", "weekly")),
    "child_key": st.sampled_from((None, "k")),
}


def _orders(wish: dict[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[Order]:
    return st.fixed_dictionaries(wish).map(lambda drawn: Order(**drawn))


plain_orders = _orders(_common)
keyed_orders = _orders(_common | _keyed)
recurring_orders = _orders(_common | _ruled)
keyed_recurring_orders = _orders(
    _common | _ruled | _keyed | {"scope": st.sampled_from((UniqueScope.ACTIVE, UniqueScope.FOREVER))}
)
named_orders = _orders(_common | _ruled | _named)
any_orders = st.one_of(plain_orders, keyed_orders, recurring_orders, keyed_recurring_orders, named_orders)


BOOM = Failure("boom 7", "ValueError")
ENDINGS: tuple[Callable[[datetime], Outcome], ...] = (
    lambda _: Returned('{"ok":true}'),
    lambda _: Returned(done_reason="worker_done"),
    lambda now: Returned(run_again_at=now + seconds(35)),
    lambda _: Raised(BOOM),
    lambda _: Raised(Failure("too slow", "TimeoutError", reason=RunReason.TIMED_OUT)),
    lambda _: Raised(Failure("gone", "Crash", "trace", RunReason.WORKER_CRASHED)),
    lambda _: Raised(BOOM, after=seconds(3)),
    lambda _: Raised(BOOM, is_final=True),
    lambda _: Snoozed(seconds(25)),
    lambda _: Cancelled("not wanted"),
    lambda _: Released(has_started=True),
    lambda _: Stopped(has_started=True),
)
UNSTARTED_ENDINGS: tuple[Callable[[datetime], Outcome], ...] = (
    lambda _: Released(has_started=False),
    lambda _: Stopped(has_started=False),
)

EDITS: tuple[Callable[[datetime], Edit], ...] = (
    lambda _: Edit(payload='{"edited":true}'),
    lambda _: Edit(priority=7),
    lambda _: Edit(priority=-5, payload='{"edited":2}'),
    lambda _: Edit(max_attempts=1),
    lambda _: Edit(max_attempts=4),
    lambda now: Edit(recurrence=CADENCES["every"], next_at=now + seconds(60)),
    lambda now: Edit(recurrence=CADENCES["fixed"], next_at=now + seconds(40)),
)

ADVANCES = tuple(map(seconds, (0.000001, 0.3, 1, 5, 19.999999, 20, 20.000001, 30, 45, 61, 61, 125, 300, 3700, 90_000)))
OPTIONS: dict[str, tuple[dict[str, Any], ...]] = {
    "boost": ({"amount": 3}, {"amount": 97}),
    "set_priority": ({"priority": 6}, {"priority": -2}, {"priority": 300}),
    "bury": ({"error": "enough 7"},),
    "fail": ({"error": "stuck 7", "will_retry": True}, {"error": "never 7", "will_retry": False}),
}
MOVES: tuple[tuple[str, dict[str, Any]], ...] = tuple(
    (verb, options)
    for verb in (
        *("cancel", "stop_run", "pause", "resume", "disable", "enable", "run_now", "retry"),
        *("boost", "set_priority", "bury", "fail", "take_lease"),
    )
    for options in OPTIONS.get(verb, ({},))
)
GATES = ((GateKind.LANE, "default"), (GateKind.LANE, "fast"), (GateKind.TASK, "crawl"), (GateKind.TASK, "mail"))
# Letters outlive every history here: which of a job's letters went is a test of the contract suite.
RETENTIONS = (
    Retention(keep_executions=1, keep=seconds(60), keep_dead=timedelta(days=3650)),
    Retention(keep_executions=2, keep=seconds(3700), keep_dead=timedelta(days=3650)),
    Retention(keep_dead=timedelta(days=3650)),
)
OVERRIDES = (JobState.PENDING, JobState.RUNNING, JobState.COMPLETED, JobState.FAILED)

places = st.integers(0, 11)
"""Which of a list's elements, counted round and round."""
several_places = st.lists(places, min_size=1, max_size=4, unique=True)
kinds = st.lists(st.integers(0, len(ENDINGS) - 1), min_size=4, max_size=4)

phones: st.SearchStrategy[list[str]] = st.lists(st.sampled_from([str(number) for number in range(8)]), max_size=4)


class Words(NamedTuple):
    """What a pull worker says in one report."""

    phones: list[str]
    cursor: str | None
    is_done: bool
    error: str | None
    key: str | None
    is_named: bool
    extend: timedelta | None

    def report(self, job_id: int, token: int, worker: str) -> Report:
        """Address it to a job; without a token the worker's name must do."""
        return Report(
            job_id=job_id,
            worker=worker,
            token=token if self.is_named else None,
            items=[{"phone": phone} for phone in self.phones],
            cursor=self.cursor,
            is_done=self.is_done,
            error=self.error,
            key=self.key,
            extend=self.extend,
        )


any_words = st.builds(
    Words,
    phones=phones,
    cursor=st.sampled_from((None, "page 3")),
    is_done=st.sampled_from((False, False, True)),
    error=st.sampled_from((None, None, None, "blocked")),
    key=st.sampled_from((None, "a", "b", "c")),
    is_named=st.sampled_from((True, True, False)),
    extend=st.sampled_from((None, seconds(1), seconds(90))),
)
