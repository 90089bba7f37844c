"""A job's fields after an edit of a part of them."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import NamedTuple

from windlass.core.interval import IntervalChange
from windlass.core.job import Edit, Job
from windlass.core.payload import decode, encode_object
from windlass.core.retry import RetrySpec
from windlass.errors import InvalidInput


class EditedFields(NamedTuple):
    """The fields of a row after an edit; None leaves them alone."""

    payload: str | None
    retry: str | None
    cadence: str | None
    next_at: datetime | None


def merged(changes: Edit, job: Job | None, now: datetime) -> EditedFields:
    """Return what an edit makes of a job; without a job, of any job."""
    cadence = None if changes.recurrence is None else changes.recurrence.encode()
    whole = EditedFields(changes.payload, None if changes.retry is None else changes.retry.encode(), cadence, changes.next_at)
    if job is None:
        return whole
    if changes.payload_fields is not None:
        whole = whole._replace(payload=_payload(changes, job))
    if changes.retry_base is not None:
        spec = changes.retry or RetrySpec.decode(job.retry)
        whole = whole._replace(retry=replace(spec, base=changes.retry_base).encode())
    return _with_rule(whole, changes, job, now) if changes.rule is not None else whole


def _payload(changes: Edit, job: Job) -> str:
    before = decode(job.payload_json if changes.payload is None else changes.payload)
    return encode_object({**before, **(changes.payload_fields or {})})


def _with_rule(whole: EditedFields, changes: Edit, job: Job, now: datetime) -> EditedFields:
    before = job.recurrence
    fields = dict(changes.rule or {})
    change = fields.pop("interval", None)
    if before is None:
        field, value = ("interval_minutes", change.number) if change else next(iter(fields.items()))
        raise InvalidInput(field, str(value), f"job {job.id} is not recurring")
    if isinstance(change, IntervalChange):
        fields |= change.fields(before)
    after = replace(before, **fields)
    next_at = None if after.keeps_time_of(before) else after.first(now)
    return whole._replace(cadence=after.encode(), next_at=next_at)
