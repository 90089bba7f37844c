"""New jobs from old ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from windlass.core.checks import check_text
from windlass.core.job import CLOSED, MAX_NAME, Enqueued, Job, NewJob
from windlass.core.payload import check_stored
from windlass.core.transitions import Moved
from windlass.errors import InvalidInput, SlotTaken
from windlass.store import batches, rows
from windlass.store.calls import wakes
from windlass.store.calls.call import Means, Step, Steps
from windlass.store.calls.move import Move, answer, numbers, was_moved
from windlass.store.calls.work import enqueue


def clone(ids: Sequence[int], created_by: str | None = None, payload: str | None = None) -> Move:
    """Enqueue finished jobs once more as new ones; the answer has the new jobs.

    A recurring job's clone has no name. One whose unique key is held is refused; asked for alone, that is raised.
    `payload` replaces theirs; JSON text.
    """
    if created_by is not None:
        check_text("created_by", created_by, MAX_NAME)
    if payload is not None:
        check_stored(payload, field="payload")

    changed = {} if payload is None else {"payload": payload}

    def cloned(means: Means) -> Steps[tuple[list[Job], dict[int, Enqueued]]]:
        yield Step("lock_jobs", {"ids": numbers(ids)})
        found = rows.jobs((yield Step("get_jobs", {"ids": numbers(ids)})))
        copies = dict(_copies(found, created_by, changed))
        # `enqueue` of nothing would still be a statement.
        made = (yield from enqueue(list(copies.values())).steps(means)) if copies else []
        return found, dict(zip(copies, made, strict=True))

    def changes(means: Means) -> Steps[set[int]]:
        _, made = yield from cloned(means)
        return {job_id for job_id, new in made.items() if not new.is_duplicate}

    def steps(means: Means) -> Steps[Moved]:
        found, made = yield from cloned(means)
        if len(ids) == 1:
            _raise_refusal(found, made)
        new = [one.id for one in made.values() if not one.is_duplicate]
        left = rows.jobs((yield Step("get_jobs", {"ids": batches.numbers(new)})))
        originals = {job_id for job_id, one in made.items() if not one.is_duplicate}
        return answer("clone", ids, originals, found)._replace(changed=tuple(left))

    return Move(steps=steps, name="clone", changes=changes, wakes=wakes.by_move, deed=was_moved)


def _copies(jobs: Sequence[Job], created_by: str | None, changed: Mapping[str, str]) -> Iterator[tuple[int, NewJob]]:
    for job in jobs:
        if job.state in CLOSED:
            try:
                yield job.id, copy_of(job, created_by, **changed)
            except InvalidInput:
                # Its stored rules cannot be read, so no new job can have them.
                continue


def _raise_refusal(found: Sequence[Job], made: dict[int, Enqueued]) -> None:
    """Raise why the one finished job has no clone: its key is held, or its rules cannot be read."""
    for job in found:
        if job.state in CLOSED and job.id not in made:
            copy_of(job, None)
        elif job.id in made and made[job.id].is_duplicate:
            raise SlotTaken(job.id, made[job.id].id)


def copy_of(job: Job, created_by: str | None, **changed: str) -> NewJob:
    """Describe a job that does what this one did, as its child."""
    return NewJob.like(job, name=None, created_by=created_by or job.created_by, **changed)
