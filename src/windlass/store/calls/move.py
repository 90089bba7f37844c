"""What an operator move is: the jobs it changes, and the answer with them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from windlass.core.audit import Deed
from windlass.core.ids import MAX_JOB
from windlass.core.job import Job, JobState
from windlass.core.letters import Settled
from windlass.core.payload import encode_object
from windlass.core.record import record
from windlass.core.transitions import Moved
from windlass.errors import SlotTaken
from windlass.store import batches, rows
from windlass.store.calls import wakes
from windlass.store.calls.call import Call, Means, Step, Steps

_MOST_IDS = 100


@record(kw_only=True)
class Move(Call[Moved]):
    """A move ready to run; a bulk needs only its `changes`, and so reads no whole rows."""

    name: str
    changes: Callable[[Means], Steps[set[int]]]


def move(
    name: str,
    ids: Sequence[int],
    changes: Callable[[Means], Steps[set[int]]],
    *,
    target: JobState | None = None,
    contested: frozenset[JobState] = frozenset(),
) -> Move:
    """Make a move, answered with the rows it left.

    A job refused in one of the `contested` states may have met a holder of its unique key; asked for alone, that is raised.
    """

    def steps(means: Means) -> Steps[Moved]:
        changed = yield from changes(means)
        left = rows.jobs((yield Step("get_jobs", {"ids": numbers(ids)})))
        moved = answer(name, ids, changed, left)._replace(target=target)
        if len(ids) == 1 and moved.refused and moved.refused[0].state in contested:
            for job_id, holder in (yield Step("holders_of", {"ids": numbers(ids)})):
                raise SlotTaken(job_id, holder)
        return moved

    return Move(steps=steps, name=name, changes=changes, wakes=wakes.by_move, deed=was_moved)


def possible(ids: Sequence[int]) -> list[int]:
    """Leave out numbers that no job can have; they come back as missing."""
    return [job_id for job_id in ids if 0 < job_id <= MAX_JOB]


def numbers(ids: Sequence[int]) -> str:
    """Write the numbers that a job can have as an array."""
    return batches.numbers(possible(ids))


def answer(name: str, ids: Sequence[int], changed: set[int], left: Sequence[Job]) -> Moved:
    """Sort the jobs a move was asked for by whether they were changed."""
    known = {job.id for job in left}
    return Moved(
        name,
        tuple(job for job in left if job.id in changed),
        tuple(job for job in left if job.id not in changed),
        tuple(job_id for job_id in ids if job_id not in known),
    )


def was_moved(answer: Moved) -> Deed:
    """Describe a move for the audit log: how many jobs it changed and how many it could not."""
    ids = [job.id for job in (*answer.changed, *answer.refused)] + list(answer.missing)
    target = {} if answer.target is None else {"target": answer.target}
    return deed_of(answer, "job", ids, **target)


def deed_of(answer: Moved | Settled, noun: str, ids: Sequence[int], **details: object) -> Deed:
    """Describe what was done to some jobs or letters."""
    counts = {"changed": len(answer.changed), "refused": len(answer.refused), "missing": len(answer.missing)}
    return Deed(
        answer.move,
        f"{noun}:{ids[0]}" if len(ids) == 1 else f"{noun}s",
        "done" if answer.changed else "refused",
        encode_object({"ids": possible(ids[:_MOST_IDS]), **counts, **details}),
    )
