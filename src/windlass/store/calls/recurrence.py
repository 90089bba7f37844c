"""The verbs that bring jobs back when they are due."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from windlass.core.cadence import Recurrence
from windlass.core.checks import check_range
from windlass.core.job import Enqueued, Job, JobState, NewJob, Promoted
from windlass.core.retry import RetrySpec
from windlass.errors import InvalidInput
from windlass.store import documents, rows
from windlass.store.calls import wakes
from windlass.store.calls.call import Call, Step, Steps, single
from windlass.store.calls.endings import bury_jobs
from windlass.store.calls.work import enqueue


def promote(limit: int, now: datetime | None = None) -> Call[Promoted]:
    """Make due jobs claimable."""
    check_range("limit", limit, 1, 10_000)
    return single("promote", {"limit": limit, "now": now}, rows.promoted, wakes=wakes.by_promotion)


def due_templates(limit: int, now: datetime | None = None) -> Call[list[Job]]:
    """Read the templates that are due."""
    check_range("limit", limit, 1, documents.MAX_ROWS)
    return single("due_templates", {"limit": limit, "now": now}, rows.jobs, is_read=True)


def spawn(template_id: int, seen_at: datetime, now: datetime | None = None) -> Call[Enqueued | InvalidInput | None]:
    """Enqueue a template's job and move it to its next time; None when another process did.

    A template whose stored rules cannot be read is buried, and the answer says what is wrong with it.
    """

    def steps() -> Steps[Enqueued | InvalidInput | None]:
        ids = documents.numbers([template_id])
        yield Step("lock_jobs", {"ids": ids})
        [[moment]] = yield Step("clock", {"now": now})
        for template in rows.jobs((yield Step("get_jobs", {"ids": ids}))):
            if template.run_at == seen_at and template.state is JobState.SCHEDULED:
                return (yield from _spawn(template, moment, now))
        return None

    return Call(steps, wakes=wakes.work)


def _spawn(template: Job, moment: datetime, now: datetime | None) -> Steps[Enqueued | InvalidInput | None]:
    try:
        next_at, job = _next_of(template, moment), _child(template)
    except InvalidInput as error:
        yield from bury_jobs([(template.id, template.task)], f"the template's stored rules cannot be read: {error}", now)
        return error
    params = {"id": template.id, "seen_at": template.run_at, "next_at": next_at, "now": now}
    if not (yield Step("advance_template", params)):
        return None
    [child] = yield from enqueue([job], now).steps()
    return child


def _next_of(template: Job, now: datetime) -> datetime | None:
    recurrence = Recurrence.decode(template.cadence or "")
    # Counted from the slot, not from the moment it is served: a late tick must not push every later one.
    next_at = replace(recurrence, fixed_rate=True).next(template.slot_at, now)
    return None if recurrence.has_ended(next_at, template.completed_runs + 1) else next_at


def _child(template: Job) -> NewJob:
    return NewJob(
        task=template.task,
        lane=template.lane,
        payload=template.payload,
        priority=template.base_priority,
        max_attempts=template.max_attempts,
        retry=RetrySpec.decode(template.retry),
        timeout=None if template.timeout_us is None else timedelta(microseconds=template.timeout_us),
        # By the time it fires: a run by hand must not take the key of the slot that is still to come.
        unique_key=template.child_key or f"{template.id}@{documents.microseconds(template.run_at)}",
        subject=template.subject,
        correlation_id=template.correlation_id,
        parent_id=template.id,
        metadata=template.metadata,
        collection=template.collection,
        item_key=template.item_key,
        target_count=template.target_count,
        created_by=f"scheduler:{template.name or template.id}"[:200],
    )
