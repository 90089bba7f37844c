"""What the row of a new job is, so that its enqueuer need not read it."""

from __future__ import annotations

from dataclasses import fields
from datetime import datetime, timedelta
from typing import Any

from windlass.core.job import SHARED, Job, JobState, NewJob, WaitReason

_MICROSECOND = timedelta(microseconds=1)
_NOTHING: dict[Any, Any] = {"int": 0, "bool": False}
_EMPTY = {field.name: _NOTHING.get(field.type) for field in fields(Job)}


def predicted_row(job: NewJob, number: int, now: datetime) -> Job:
    """Return the row that inserting a job at `now` made; what is neither given nor set here is empty in every new row."""
    run_at = job.run_at or now + (job.delay or timedelta())
    is_later = run_at > now
    is_recurring = job.recurrence is not None
    given = {field: getattr(job, name) for name, field in SHARED.items()}
    made = {
        "id": number,
        "state": JobState.SCHEDULED if job.spawn or is_later else JobState.PENDING,
        "wait_reason": WaitReason.RECURRENCE if is_recurring else WaitReason.DELAY if is_later else WaitReason.NEW,
        "base_priority": job.priority,
        "run_at": run_at,
        "slot_at": (job.slot_at or run_at) if is_recurring else None,
        "retry": job.retry.encode(),
        "cadence": None if job.recurrence is None else job.recurrence.encode(),
        "timeout_us": None if job.timeout is None else job.timeout // _MICROSECOND,
        "unique_scope": None if job.unique_key is None else job.unique_scope,
        "unique_slot": job.unique_key,
        "created_at": now,
        "updated_at": now,
        "declared_at": None if job.declared_by is None else now,
    }
    return Job(**{**_EMPTY, **given, **made})
