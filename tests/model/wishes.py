"""What the callers of the model test wish for: jobs, outcomes, edits, waits."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from hypothesis import strategies as st

from tests.model.verdict import first_slot
from windlass.core.cadence import ByHandler, Cron, Every, Misfire, OnExhausted, Recurrence
from windlass.core.job import Edit, NewJob, OnConflict, RunReason, UniqueScope
from windlass.core.outcome import Cancelled, Failure, Outcome, Raised, Released, Returned, Snoozed, Stopped
from windlass.core.retry import RetrySpec

START = datetime(2026, 1, 15, 10, 30, tzinfo=UTC)
LEASE = timedelta(seconds=20)


def seconds(number: float) -> timedelta:
    """Say a duration."""
    return timedelta(seconds=number)


# Without jitter, so that the model needs no dice.
RETRIES = (RetrySpec(jitter=0.0), RetrySpec(profile="interval"), RetrySpec(base=seconds(10), cap=seconds(15), jitter=0.0))
CADENCES = (
    Recurrence(cadence=Every(seconds(60))),
    Recurrence(cadence=Every(seconds(45)), max_runs=2),
    Recurrence(cadence=Every(seconds(60)), on_exhausted=OnExhausted.FAIL),
    Recurrence(cadence=Every(seconds(40)), fixed_rate=True),
    Recurrence(cadence=Every(seconds(30)), fixed_rate=True, misfire=Misfire.SKIP),
    Recurrence(cadence=Every(seconds(30)), fixed_rate=True, misfire=Misfire.ALL, misfire_max=3),
    Recurrence(cadence=Every(seconds(90)), end_at=START + seconds(600)),
    Recurrence(cadence=Cron("@hourly")),
    Recurrence(cadence=ByHandler(seconds(120))),
    Recurrence(cadence=ByHandler(seconds(50)), max_runs=3),
)
WAITS = (None, None, None, seconds(0), seconds(5), seconds(70))


class Order(NamedTuple):
    """A job somebody wants."""

    task: str
    lane: str
    priority: int
    wait: timedelta | None
    max_attempts: int | None
    retry: RetrySpec
    payload: int
    key: str | None = None
    scope: UniqueScope = UniqueScope.ACTIVE
    on_conflict: OnConflict = OnConflict.IGNORE
    rule: Recurrence | None = None
    spawn: bool = False
    name: str | None = None
    child_key: str | None = None

    def job(self, now: datetime) -> NewJob:
        """Spell it as a caller would at this moment."""
        run_at = first_slot(self.rule, now) if self.rule is not None and self.wait is None else None
        return NewJob(
            task=self.task,
            lane=self.lane,
            payload=f'{{"n":{self.payload}}}',
            priority=self.priority,
            run_at=run_at,
            delay=self.wait,
            max_attempts=self.max_attempts,
            retry=self.retry,
            recurrence=self.rule,
            spawn=self.spawn,
            name=self.name,
            unique_key=self.key,
            unique_scope=self.scope,
            on_conflict=self.on_conflict,
            child_key=self.child_key,
        )


_common = {
    "task": st.sampled_from(("crawl", "mail")),
    "lane": st.sampled_from(("default", "fast")),
    "priority": st.sampled_from((0, 0, 5, -3)),
    "wait": st.sampled_from(WAITS),
    "max_attempts": st.sampled_from((None, 1, 2)),
    "retry": st.sampled_from(RETRIES),
    "payload": st.integers(0, 99),
}
_keyed = {
    "key": st.sampled_from(("k", "q")),
    "scope": st.sampled_from(UniqueScope),
    "on_conflict": st.sampled_from(OnConflict),
}
_ruled = {"rule": st.sampled_from(CADENCES)}

plain_orders = st.builds(Order, **_common)
keyed_orders = st.builds(Order, **_common, **_keyed)
recurring_orders = st.builds(Order, **_common, **_ruled)
keyed_recurring_orders = st.builds(Order, **_common, **_ruled, **_keyed)
# A job with a name and a key, held by two different jobs, has no holder that SPEC §6 would name: no job here has both.
named_orders = st.builds(
    Order,
    **_common,
    **_ruled,
    on_conflict=st.sampled_from(OnConflict),
    spawn=st.booleans(),
    name=st.sampled_from((None, "nightly", "weekly")),
    child_key=st.sampled_from((None, "k")),
)
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
    lambda now: Edit(recurrence=CADENCES[0], next_at=now + seconds(60)),
    lambda now: Edit(recurrence=CADENCES[3], next_at=now + seconds(40)),
)

ADVANCES = tuple(
    map(seconds, (0.000001, 0.3, 1, 5, 19.999999, 20, 20.000001, 30, 45, 61, 61, 125, 300, 3700, 90_000))
)
MOVES = ("cancel", "stop_run", "pause", "resume", "disable", "enable", "run_now", "retry")

places = st.integers(0, 11)
"""Which of a list's elements, counted round and round."""
several_places = st.lists(places, min_size=1, max_size=4, unique=True)
