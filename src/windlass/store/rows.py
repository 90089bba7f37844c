"""Row tuples into records, by position."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

from windlass.core.chore import Chore
from windlass.core.job import (
    Claimed,
    Count,
    DeadLetter,
    Execution,
    Held,
    Job,
    JobState,
    Lapsed,
    Lease,
    Promoted,
    RunReason,
    RunStatus,
    Slice,
    Slices,
    UniqueScope,
    WaitReason,
)
from windlass.core.known_task import KnownTask
from windlass.core.source import Source
from windlass.store.batches import instant

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

Row = tuple[Any, ...]
_Names = list[tuple[int, type[StrEnum]]]


class Shape(NamedTuple):
    """Which columns of a query's answer are instants and which are truth values: SQLite has neither type."""

    instants: tuple[int, ...] = ()
    booleans: tuple[int, ...] = ()
    packed: int = 0
    """How many columns cross in one piece on SQLite; none: row by row."""

    @classmethod
    def of(cls, record: type, *, after: int = 0) -> Shape:
        """Derive the shape of a query that returns the fields of a record, after so many columns of its own."""
        kinds = [_kind(hint) for hint in record.__annotations__.values()]
        places = {kind: tuple(after + place for place, one in enumerate(kinds) if one == kind) for kind in ("datetime", "bool")}
        return cls(places["datetime"], places["bool"])


def _places(record: type, **kinds: type[StrEnum]) -> _Names:
    fields = list(record.__annotations__)
    return [(fields.index(name), kind) for name, kind in kinds.items()]


def _kind(hint: Any) -> str:
    # Named tuples keep their annotations as references.
    return str(getattr(hint, "__forward_arg__", hint)).removesuffix(" | None")


CLAIMED_WIDTH = len(Claimed._fields)
CLAIMED = Shape.of(Claimed)
_CLAIM = Shape((5, 11))
LETTER = Shape.of(DeadLetter)
JOB = Shape.of(Job)
_EXECUTION = Shape.of(Execution)
_JOB_NAMES = _places(Job, state=JobState, wait_reason=WaitReason, unique_scope=UniqueScope)
_EXECUTION_NAMES = _places(Execution, status=RunStatus, reason=RunReason)

SHAPES: dict[str, Shape] = {
    "clock": Shape((0,)),
    "contact": Shape((0,)),
    "insert_jobs": Shape((2,)),
    "insert_plain": Shape((2,)),
    "claim": _CLAIM,
    "claim_suspect": _CLAIM,
    "claim_any": _CLAIM,
    "finish": Shape(packed=2),
    "reclaim": Shape(packed=2),
    "lapsed": Shape((*CLAIMED.instants, CLAIMED_WIDTH), (CLAIMED_WIDTH + 1, CLAIMED_WIDTH + 2)),
    "slices": Shape((4,), (6,)),
    "renew": Shape.of(Held),
    "vouch": Shape((2,)),
    "promote": Shape.of(Promoted),
    "get_jobs": JOB,
    "due_templates": JOB,
    "list_executions": _EXECUTION,
    "get_execution": _EXECUTION,
    "list_dead_letters": LETTER,
    "doctor_minutes": Shape((0,)),
    "doctor_objects": Shape((), (2,)),
    "doctor_tables": Shape((), (4,)),
    "doctor_overdue": Shape((3,)),
    "add_progress": Shape((1,)),
    "get_known_task": Shape.of(KnownTask),
    "get_lane": Shape((1,)),
    "has_kind": Shape((), (0,)),
    "list_chores": Shape.of(Chore),
    "long_runs": Shape((3,)),
    "touch_source": Shape.of(Source),
}
"""By query. Here are those of queries that several modules name; a module of calls adds its own when it is loaded."""


# A look-up is five times cheaper than calling the enumeration.
_STATES = {state.value: state for state in JobState}


def claimed(rows: Sequence[Row]) -> list[Claimed]:
    """Read claimed jobs in the order they are to run: the statement returns them in any order."""
    jobs = [Claimed._make(row) for row in rows]
    jobs.sort(key=_claim_order)
    return jobs


def taken(rows: Sequence[Row], lease: Lease) -> list[Claimed]:
    """Read jobs that a claim took under one lease, in the order they are to run."""
    jobs = [_taken(row, lease) for row in rows]
    jobs.sort(key=_claim_order)
    return jobs


def _taken(row: Row, lease: Lease) -> Claimed:
    job_id, task, lane, payload, priority, run_at, attempt, execution, crashes, failures, runs, claimed_at, rest = row
    slot_us, most, retry, cadence, timeout_us, subject, correlation_id, parent_id, cursor, progress, results, target, trace = (
        rest or _NO_REST
    )
    return Claimed._make((
        job_id, task, lane, payload, priority, run_at, None if slot_us is None else instant(slot_us), attempt, most, execution,
        crashes, failures, runs, retry, cadence, timeout_us, lease.token, lease.worker, claimed_at, claimed_at + lease.length,
        subject, correlation_id, parent_id, cursor, progress, results, target, trace,
    ))  # fmt: skip


_NO_REST: tuple[Any, ...] = (None, None, "task", None, None, None, None, None, None, 0, 0, None, None)


def _claim_order(job: Claimed) -> tuple[int, datetime, int]:
    return (-job.priority, job.run_at, job.id)


def lapsed(rows: Sequence[Row]) -> list[Lapsed]:
    """Read leases past their end."""
    return [Lapsed(Claimed._make(row[:CLAIMED_WIDTH]), *row[CLAIMED_WIDTH:]) for row in rows]


def held(rows: Sequence[Row]) -> list[Held]:
    """Read the leases that still stand."""
    return [Held._make(row) for row in rows]


def slices(rows: Sequence[Row]) -> Slices:
    """Read the open slices, the one whose head comes first first."""
    found = [(Slice._make(row[1:6]), row[6]) for row in rows if row[1] is not None]
    suspects = tuple(part for part, is_suspect in found if is_suspect)
    return Slices(rows[0][0], tuple(part for part, is_suspect in found if not is_suspect), suspects)


def ids(rows: Sequence[Row]) -> list[int]:
    """Read a column of job numbers."""
    return [row[0] for row in rows]


def finished(rows: Sequence[Row]) -> dict[int, JobState]:
    """Read which jobs were accepted and the state each was left in."""
    return {row[0]: _STATES[row[1]] for row in rows}


def promoted(rows: Sequence[Row]) -> Promoted:
    """Read what a promotion did."""
    return Promoted._make(rows[0])


def jobs(rows: Sequence[Row]) -> list[Job]:
    """Read whole jobs."""
    return [_job(row) for row in rows]


def _job(row: Row) -> Job:
    return Job(*_named(row, _JOB_NAMES))


def executions(rows: Sequence[Row]) -> list[Execution]:
    """Read ended runs."""
    return [_execution(row) for row in rows]


def _execution(row: Row) -> Execution:
    return Execution(*_named(row, _EXECUTION_NAMES))


def _named(row: Row, places: _Names) -> list[Any]:
    """Read the columns that hold the names of enumerations."""
    values = list(row)
    for place, kind in places:
        if values[place] is not None:
            values[place] = kind(values[place])
    return values


def dead_letters(rows: Sequence[Row]) -> list[DeadLetter]:
    """Read dead letters."""
    return [DeadLetter(*row) for row in rows]


def counts(rows: Sequence[Row]) -> list[Count]:
    """Read the counts that are not zero."""
    return [Count(row[0], row[1], JobState(row[2]), WaitReason(row[3]) if row[3] else None, row[4]) for row in rows if row[4]]
