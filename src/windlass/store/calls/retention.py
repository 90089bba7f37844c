"""Retention in small batches, each a short transaction of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from windlass.core.job import JobState
from windlass.core.retention import Retention
from windlass.store import batches, rows
from windlass.store.calls.call import Call, Means, Step, Steps, single
from windlass.store.rows import SHAPES, Row, Shape

SHAPES |= {"old_jobs": Shape((1,), (2,))}

MAX_RUNS = 1000
"""How many runs of a job go at once."""


class Histories(NamedTuple):
    """Runs that may go, and where the page ended."""

    runs: tuple[RunRange, ...]
    last_id: int | None


class RunRange(NamedTuple):
    """A range of a job's runs."""

    job_id: int
    first: int
    last: int

    @property
    def length(self) -> int:
        """How many there are: numbers have no gaps."""
        return self.last - self.first + 1


class OldJob(NamedTuple):
    """A job that was closed long ago."""

    id: int
    closed_at: datetime
    is_prunable: bool


def long_histories(rules: Retention, after: int, limit: int) -> Call[Histories]:
    """Look through a page of jobs for runs that may go."""
    params = {"keep": rules.keep_executions, "keep_for": rules.keep, "most": MAX_RUNS, "after": after, "limit": limit}
    return single("long_histories", params, lambda found: _histories(found, limit), is_read=True)


def _histories(found: Sequence[Row], limit: int) -> Histories:
    runs = tuple(RunRange._make(row) for row in found if row[1] is not None and row[2] >= row[1])
    return Histories(runs, found[-1][0] if len(found) == limit else None)


def parts(runs: Sequence[RunRange]) -> Iterator[list[RunRange]]:
    """Cut ranges into batches of about as many runs as one job may lose at once."""
    batch: list[RunRange] = []
    for part in runs:
        if batch and sum(one.length for one in batch) + part.length > MAX_RUNS:
            yield batch
            batch = []
        batch.append(part)
    if batch:
        yield batch


def prune_executions(runs: Sequence[RunRange]) -> Call[int]:
    """Delete runs; returns how many went."""
    listed = batches.array(f'{{"id":{one.job_id},"first":{one.first},"last":{one.last}}}' for one in runs)
    return single("prune_executions", {"runs": listed}, lambda found: found[0][0])


def old_jobs(state: JobState, keep: timedelta, after: tuple[datetime, int], *, limit: int) -> Call[list[OldJob]]:
    """Look through a page of jobs that were closed long ago, the oldest first."""
    params = {"state": state, "keep_for": keep, "after_at": after[0], "after": after[1], "limit": limit}
    return single("old_jobs", params, lambda found: [OldJob._make(row) for row in found], is_read=True)


def prune_jobs(ids: Sequence[int], keep: timedelta) -> Call[int]:
    """Delete jobs that still may go, with their bodies, runs and keys; returns how many did."""

    def steps(_: Means) -> Steps[int]:
        # Locked, then asked again: an operator may be bringing one back at this moment.
        locked = rows.ids((yield Step("lock_old_jobs", {"ids": batches.numbers(ids)})))
        gone = rows.ids((yield Step("prune_jobs", {"ids": batches.numbers(locked), "keep_for": keep})))
        if gone:
            yield Step("prune_parts", {"ids": batches.numbers(gone)})
        return len(gone)

    return Call(steps)


def prune_letters(keep: timedelta, limit: int) -> Call[int]:
    """Delete letters that were dealt with long ago; returns how many went."""
    return single("prune_letters", {"keep_for": keep, "limit": limit}, lambda found: found[0][0])
