"""The verbs that bring jobs back when they are due."""

from __future__ import annotations

from datetime import datetime
from random import Random
from typing import NamedTuple

from windlass.core.cadence import MISSED_AFTER, Recurrence
from windlass.core.checks import check_range
from windlass.core.job import Job, Promoted
from windlass.errors import InvalidInput
from windlass.store import batches, rows
from windlass.store.calls import wakes
from windlass.store.calls.call import Call, Means, Step, Steps, single
from windlass.store.rows import SHAPES, Shape

SHAPES |= {"lock_missed": Shape((2,))}


def promote(limit: int) -> Call[Promoted]:
    """Make due jobs claimable, but for those that `catch_up` decides about."""
    check_range("limit", limit, 1, 10_000)
    params = {"limit": limit, "missed_after": MISSED_AFTER}
    return single("promote", params, rows.promoted, is_engine=True, wakes=wakes.by_promotion)


def due_templates(limit: int) -> Call[list[Job]]:
    """Read the templates that are due."""
    check_range("limit", limit, 1, batches.MAX_ROWS)
    return single("due_templates", {"limit": limit}, rows.jobs, is_read=True, is_engine=True)


def catch_up(limit: int) -> Call[int]:
    """Send jobs that missed their time where their rule leads: to a later slot, or, if that has come too, to be claimed.

    The answer counts the claimable ones.
    """

    def steps(means: Means) -> Steps[int]:
        [[moment]] = yield Step("clock", {})
        found = yield Step("lock_missed", {"limit": limit, "missed_after": MISSED_AFTER, "now": moment})
        moves = [_caught_up(_Missed._make(row), moment, means.rng) for row in found]
        if not moves:
            return 0
        [[claimable]] = yield Step("catch_up", {"jobs": batches.array(moves)})
        return int(claimable)

    return Call(steps, is_engine=True, wakes=wakes.work)


class _Missed(NamedTuple):
    id: int
    cadence: str
    slot_at: datetime
    completed_runs: int


def _caught_up(job: _Missed, now: datetime, rng: Random) -> str:
    try:
        rule = Recurrence.decode(job.cadence)
        slot_at = rule.caught_up(job.slot_at, now)
    except InvalidInput:
        # Its rule cannot be read; the run that follows has the error.
        return f'{{"id":{job.id}}}'
    if slot_at != job.slot_at and rule.has_ended(slot_at, job.completed_runs):
        return f'{{"id":{job.id},"has_ended":true}}'
    run_at = rule.run_time(slot_at, rng)
    return f'{{"id":{job.id},"slot_us":{batches.microseconds(slot_at)},"run_us":{batches.microseconds(run_at)}}}'
