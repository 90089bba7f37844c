"""The interval scheduler's cron migration: a page of jobs in a transaction, each judged as it is at that moment."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import partial
from typing import NamedTuple

from windlass.core import cron_migration as rules
from windlass.core.audit import Deed
from windlass.core.checks import check_range
from windlass.core.cron_migration import Conversion
from windlass.core.job import Job
from windlass.core.payload import encode_object
from windlass.store import batches, rows
from windlass.store.calls.call import Call, Means, Step, Steps

MAX_PAGE = 100


class Converted(NamedTuple):
    """The conversions of a page of jobs, and where the next page begins; without one there are no more."""

    jobs: tuple[Conversion, ...]
    next_after: int | None


def convert(after: int, limit: int, *, dry_run: bool, backwards: bool) -> Call[Converted]:
    """Convert a page of recurring jobs, or undo that, or only return what would be done."""
    check_range("limit", limit, 1, MAX_PAGE)

    def steps(_: Means) -> Steps[Converted]:
        ids = rows.ids((yield Step("list_recurring", {"after": after, "limit": limit})))
        listed = batches.numbers(ids)
        if not dry_run:
            yield Step("lock_jobs", {"ids": listed})
        [[moment]] = yield Step("clock", {})
        jobs = rows.jobs((yield Step("get_jobs", {"ids": listed})))
        found = tuple(_judged(jobs, moment, backwards=backwards))
        changes = [each for each in found if each.becomes is not None]
        if changes and not dry_run:
            yield Step("set_cadences", {"jobs": batches.array(map(_document, changes))})
        return Converted(found, ids[-1] if len(ids) == limit else None)

    return Call(steps, is_read=dry_run, deed=None if dry_run else partial(_was_converted, backwards=backwards))


def _judged(jobs: Sequence[Job], now: datetime, *, backwards: bool) -> Iterator[Conversion]:
    for job in jobs:
        found = None
        # Since its number was read it may have ended.
        if job.closed_at is None:
            found = rules.undo(job, now) if backwards else rules.convert(job)
        if found is not None:
            yield found


def _document(change: Conversion) -> str:
    assert change.becomes is not None  # noqa: S101 - the caller has chosen these
    fields = {"id": change.job_id, "cadence": change.becomes.encode(), "metadata": change.metadata}
    if change.next_at is not None:
        fields["next_us"] = batches.microseconds(change.next_at)
    return json.dumps(fields)


def _was_converted(done: Converted, *, backwards: bool) -> Deed | None:
    ids = [each.job_id for each in done.jobs if each.becomes is not None]
    action = "undo cron conversion" if backwards else "convert cron"
    return Deed(action, None, "done", encode_object({"jobs": ids})) if ids else None
