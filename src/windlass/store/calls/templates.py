"""Templates: what they spawn when they are due, and what of their earlier jobs."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime
from random import Random
from typing import NamedTuple

from windlass.core.cadence import MISSED_AFTER, Misfire, Overlap, Recurrence
from windlass.core.job import Enqueued, Job, JobState, NewJob, UniqueScope, WaitReason
from windlass.core.topic import Topic
from windlass.errors import InvalidInput
from windlass.store import batches, rows
from windlass.store.calls.call import Call, Means, Step, Steps
from windlass.store.calls.endings import bury_jobs
from windlass.store.calls.work import enqueue

_REPLACED = "the template's next job takes its place"


class Spawned(NamedTuple):
    """What came of a template that was due; no child means that this slot is left out."""

    child: Enqueued | None = None
    error: InvalidInput | None = None
    takes_place: bool = False
    """Whether it cancels what came before it, whose worker is to be woken."""


class _Turn(NamedTuple):
    """What a template does now: whether its slot is served, and which is the next."""

    is_served: bool
    slot_at: datetime | None
    run_at: datetime | None


def spawn(template_id: int, seen_at: datetime) -> Call[Spawned | None]:
    """Enqueue a template's job and move it to its next time; None when another process did.

    A template whose stored rules cannot be read is buried, and the answer has what is wrong with it.
    """

    def steps(means: Means) -> Steps[Spawned | None]:
        ids = batches.numbers([template_id])
        # The lock makes spawners of one template take turns, so that each sees the children of the one before.
        yield Step("lock_jobs", {"ids": ids})
        [[moment]] = yield Step("clock", {})
        for template in rows.jobs((yield Step("get_jobs", {"ids": ids}))):
            if template.run_at == seen_at and template.state is JobState.SCHEDULED:
                return (yield from _spawn(template, moment, means))
        return None

    return Call(steps, is_engine=True, wakes=_by_spawn)


def _by_spawn(answer: Spawned | None) -> Collection[Topic]:
    if answer is None or answer.child is None:
        return ()
    return (Topic.WORK, Topic.CONTROL) if answer.takes_place else (Topic.WORK,)


def _spawn(template: Job, moment: datetime, means: Means) -> Steps[Spawned | None]:
    try:
        rule = Recurrence.decode(template.cadence or "")
        template = _at_its_slot(rule, template, moment)
        child = _child(template)
        is_served = not _is_skipped(rule, template, moment) and (yield from _makes_room(rule, template))
        turn = _turn(rule, template, moment, means.rng, is_served=is_served)
    except InvalidInput as error:
        yield from bury_jobs([(template.id, template.task)], f"the template's stored rules cannot be read: {error}")
        return Spawned(error=error)
    params = {
        "id": template.id,
        "seen_at": template.run_at,
        "is_served": turn.is_served,
        "next_slot_at": turn.slot_at,
        "next_at": turn.run_at,
    }
    if not (yield Step("advance_template", params)):
        return None
    if not turn.is_served:
        return Spawned()
    [enqueued] = yield from enqueue([child]).steps(means)
    return Spawned(enqueued, takes_place=rule.overlap is Overlap.CANCEL_PREVIOUS)


def _is_late(template: Job, now: datetime) -> bool:
    # What an operator asked for is never too late.
    return template.wait_reason is WaitReason.RECURRENCE and now - template.run_at > MISSED_AFTER


def _at_its_slot(rule: Recurrence, template: Job, now: datetime) -> Job:
    """Leave out the oldest of more missed slots than are to be caught up with."""
    if rule.misfire is not Misfire.ALL or template.slot_at is None or not _is_late(template, now):
        return template
    return replace(template, slot_at=replace(rule, fixed_rate=True).caught_up(template.slot_at, now))


def _is_skipped(rule: Recurrence, template: Job, now: datetime) -> bool:
    return rule.misfire is Misfire.SKIP and _is_late(template, now)


def _makes_room(rule: Recurrence, template: Job) -> Steps[bool]:
    """Return whether a child may come, after doing what the rule wants done about unfinished ones."""
    if rule.overlap is Overlap.ALLOW:
        return True
    unfinished = rows.ids((yield Step("unfinished_children", {"parent_id": template.id})))
    if unfinished and rule.overlap is Overlap.CANCEL_PREVIOUS:
        yield Step("cancel", {"ids": batches.numbers(unfinished), "reason": _REPLACED})
    return not unfinished or rule.overlap is Overlap.CANCEL_PREVIOUS


def _turn(rule: Recurrence, template: Job, now: datetime, rng: Random, *, is_served: bool) -> _Turn:
    # Counted from the slot, not from the moment it is served: a late tick must not push every later one.
    fixed = replace(rule, fixed_rate=True)
    if template.slot_at is not None and _is_skipped(rule, template, now):
        slot_at = fixed.caught_up(template.slot_at, now)
    else:
        slot_at = fixed.next(fixed.served(template.slot_at, now), now)
    if rule.has_ended(slot_at, template.completed_runs + is_served):
        return _Turn(is_served, None, None)
    return _Turn(is_served, slot_at, rule.run_time(slot_at, rng))


def _child(template: Job) -> NewJob:
    is_planned = template.wait_reason is WaitReason.RECURRENCE and template.slot_at is not None
    # A run by hand must not take the key of the slot that is still to come.
    fires_at = template.slot_at if is_planned and template.slot_at is not None else template.run_at
    return NewJob.like(
        template,
        recurrence=None,
        spawn=False,
        name=None,
        unique_key=template.child_key or f"{template.id}@{batches.microseconds(fires_at)}",
        unique_scope=UniqueScope.ACTIVE,
        child_key=None,
        description=None,
        created_by=f"scheduler:{template.name or template.id}"[:200],
    )
