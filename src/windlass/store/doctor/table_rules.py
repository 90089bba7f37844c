"""The rules that whole tables keep together: counts, keys, breakers, feeds."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import NamedTuple

from windlass.core.breaker import BreakerState
from windlass.store.doctor.rule import BrokenRule, Rule, broken
from windlass.store.rows import SHAPES, Row, Shape

_BREAKER_STATES = frozenset(BreakerState)


def _clashes(rule: str, what: str) -> Callable[[Sequence[Row]], list[BrokenRule]]:
    return lambda found: [BrokenRule(rule, job_id, f"{what} is held by job {holder}") for job_id, holder in found]


def _miscounts(found: Sequence[Row]) -> list[BrokenRule]:
    return [
        BrokenRule(
            "counts", None, f"{counted} counted, {present} present: task {task!r}, lane {lane!r}, {state} {reason}".rstrip()
        )
        for task, lane, state, reason, counted, present in found
    ]


def _uncounted(found: Sequence[Row]) -> list[BrokenRule]:
    return [BrokenRule("totals", None, f"{counted} runs counted, {kept} kept") for counted, kept in found]


def _split_minutes(found: Sequence[Row]) -> list[BrokenRule]:
    return [
        BrokenRule("minutes", None, f"{minute:%Y-%m-%d %H:%M}: {whole} runs in all, {parts} by task")
        for minute, whole, parts in found
    ]


class _RunTimesRow(NamedTuple):
    """The times of a task's runs, with how many runs its totals and its minutes have."""

    task: str
    runs: int
    waits: str
    durations: str
    in_totals: int
    in_minutes: int
    job_id: int | None = None

    @property
    def measured(self) -> tuple[int, int]:
        """How many runs the two histograms have."""
        return sum(json.loads(self.waits).values()), sum(json.loads(self.durations).values())


_RUN_TIMES_RULES = (
    Rule(
        "run_histograms",
        lambda row: row.measured == (row.runs, row.runs),
        "task {row.task!r}: {row.runs} runs, {row.measured} in the histograms of waits and durations",
    ),
    Rule(
        "run_times",
        lambda row: row.in_minutes <= row.runs <= row.in_totals,
        "task {row.task!r}: {row.runs} runs have times, {row.in_minutes} are in its minutes and {row.in_totals} in its totals",
    ),
)


def _run_times(found: Sequence[Row]) -> list[BrokenRule]:
    return [problem for row in found for problem in broken(_RUN_TIMES_RULES, _RunTimesRow(*row))]


def _gates(found: Sequence[Row]) -> list[BrokenRule]:
    return [] if found[0][0] == 1 else [BrokenRule("gates", None, f"windlass_gates has {found[0][0]} rows: no claim finds work")]


class _BreakerRow(NamedTuple):
    """A breaker's row, the job that tries it, and the state that its newest event has."""

    job_id: int | None
    name: str
    state: str
    threshold: int
    open_us: int
    has_opened_at: bool
    has_probe_at: bool
    has_half_opened_at: bool
    has_probe_token: bool
    is_forced: bool
    told_state: str | None


SHAPES |= {"doctor_breakers": Shape.of(_BreakerRow)}


_BREAKER_RULES = (
    Rule("breaker_state", lambda row: row.state in _BREAKER_STATES, "breaker {row.name!r} is {row.state!r}"),
    Rule("breaker_limits", lambda row: row.threshold >= 1 and row.open_us >= 1, "breaker {row.name!r} could never open or close"),
    Rule(
        "breaker_open",
        lambda row: row.state != BreakerState.OPEN or (row.has_opened_at and (row.has_probe_at or row.is_forced)),
        "breaker {row.name!r} is open and will never be tried",
    ),
    Rule(
        "breaker_probe",
        lambda row: (row.state == BreakerState.HALF_OPEN) == row.has_half_opened_at == row.has_probe_token,
        "breaker {row.name!r} is {row.state}, and its permit says otherwise",
    ),
    Rule("breaker_permit", lambda row: row.has_probe_token or row.job_id is None, "breaker {row.name!r} has half a permit"),
    Rule(
        "breaker_forced",
        lambda row: not row.is_forced or row.state == BreakerState.OPEN,
        "breaker {row.name!r} is forced open and {row.state}",
    ),
    Rule(
        "breaker_told",
        lambda row: row.told_state is None or row.told_state == row.state,
        "breaker {row.name!r} is {row.state}, and its newest event says {row.told_state}",
    ),
)


def _breakers(found: Sequence[Row]) -> list[BrokenRule]:
    return [problem for row in found for problem in broken(_BREAKER_RULES, _BreakerRow._make(row))]


def _missing_items(found: Sequence[Row]) -> list[BrokenRule]:
    return [BrokenRule("items", job_id, f"{said} results counted, {present} items kept") for job_id, said, present in found]


def _feeds(found: Sequence[Row]) -> list[BrokenRule]:
    return [BrokenRule("feed", job_id, f"feed {feed_id} and its job disagree") for job_id, feed_id in found]


def _miscounted_feeds(found: Sequence[Row]) -> list[BrokenRule]:
    return [
        BrokenRule("subscribers", job_id, f"feed {feed_id}: {counted} counted, {present} present")
        for job_id, feed_id, counted, present in found
    ]


def _lost_keys(found: Sequence[Row]) -> list[BrokenRule]:
    return [BrokenRule("idempotency", job_id, f"{keys} keys of no job") for job_id, keys in found]


WHOLE: dict[str, Callable[[Sequence[Row]], list[BrokenRule]]] = {
    "doctor_slots": _clashes("slot_clash", "its unique slot"),
    "doctor_names": _clashes("name_clash", "its name"),
    "doctor_counts": _miscounts,
    "doctor_gates": _gates,
    "doctor_breakers": _breakers,
    "doctor_items": _missing_items,
    "doctor_idempotency": _lost_keys,
    "doctor_feeds": _feeds,
    "doctor_subscribers": _miscounted_feeds,
    "doctor_totals": _uncounted,
    "doctor_minutes": _split_minutes,
    "doctor_run_times": _run_times,
}
