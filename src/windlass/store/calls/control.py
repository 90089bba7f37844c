"""The verbs of operators: each answers with the rows its own statement left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from windlass.core.ids import MAX_JOB
from windlass.core.job import MAX_TEXT, Edit, Job, JobState
from windlass.core.payload import sanitise_text
from windlass.core.transitions import Moved
from windlass.errors import InvalidInput, SlotTaken
from windlass.store import documents, rows
from windlass.store.calls import wakes
from windlass.store.calls.call import Call, Step, Steps


def _move(move: str, query: str, ids: Sequence[int], params: Mapping[str, Any]) -> Call[Moved]:
    """Make an operator move, answered with the rows its own statement left."""
    listed = documents.numbers(possible(ids))

    def steps() -> Steps[Moved]:
        changed = set(rows.ids((yield Step(query, {"ids": listed, **params}))))
        return _moved(move, ids, changed, rows.jobs((yield Step("get_jobs", {"ids": listed}))))

    return Call(steps, wakes=wakes.by_move)


def possible(ids: Sequence[int]) -> list[int]:
    """Leave out numbers that no job can have; they come back as missing."""
    return [job_id for job_id in ids if 0 < job_id <= MAX_JOB]


def _moved(move: str, ids: Sequence[int], changed: set[int], left: Sequence[Job]) -> Moved:
    known = {job.id for job in left}
    return Moved(
        move,
        tuple(job for job in left if job.id in changed),
        tuple(job for job in left if job.id not in changed),
        tuple(job_id for job_id in ids if job_id not in known),
    )


def cancel(ids: Sequence[int], reason: str | None = None, now: datetime | None = None) -> Call[Moved]:
    """Cancel jobs at once; running ones keep their lease until they have stopped."""
    return _move("cancel", "cancel", ids, {"reason": None if reason is None else sanitise_text(reason, MAX_TEXT), "now": now})


def stop_run(ids: Sequence[int], now: datetime | None = None) -> Call[Moved]:
    """Ask running recurring jobs to end this run; their cadence goes on."""
    return _move("stop", "stop_run", ids, {"now": now})


def pause(ids: Sequence[int], now: datetime | None = None) -> Call[Moved]:
    """Hold waiting jobs until they are resumed."""
    return _move("pause", "pause", ids, {"now": now})


def resume(ids: Sequence[int], now: datetime | None = None) -> Call[Moved]:
    """Let paused jobs go on; recurring ones count anew from now."""

    def steps() -> Steps[Moved]:
        listed = documents.numbers(possible(ids))
        # Locked first: the next time is computed from a cadence that nobody may change meanwhile.
        yield Step("lock_jobs", {"ids": listed})
        [[moment]] = yield Step("clock", {"now": now})
        found = rows.jobs((yield Step("get_jobs", {"ids": listed})))
        batch = documents.array(_resumed(job, moment) for job in found if job.state is JobState.PAUSED)
        changed = set(rows.ids((yield Step("resume", {"jobs": batch, "now": now}))))
        return _moved("resume", ids, changed, rows.jobs((yield Step("get_jobs", {"ids": listed}))))

    return Call(steps, wakes=wakes.by_move)


def _resumed(job: Job, now: datetime) -> str:
    try:
        next_at = None if job.recurrence is None else job.recurrence.first(now)
    except InvalidInput:
        # A cadence nobody can read keeps its time; the run that follows says what is wrong.
        next_at = None
    moved = "" if next_at is None else f',"next_us":{documents.microseconds(next_at)}'
    return f'{{"id":{job.id}{moved}}}'


def disable(ids: Sequence[int], now: datetime | None = None) -> Call[Moved]:
    """Stop jobs from running by themselves; a running one finishes its run first."""
    return _move("disable", "disable", ids, {"now": now})


def enable(ids: Sequence[int], now: datetime | None = None) -> Call[Moved]:
    """Undo `disable`; the next time is kept, so an overdue job is due at once."""
    return _move("enable", "enable", ids, {"now": now})


def run_now(ids: Sequence[int], now: datetime | None = None) -> Call[Moved]:
    """Run waiting jobs now, running ones once more after their run."""
    return _move("run now", "run_now", ids, {"now": now})


def retry(ids: Sequence[int], now: datetime | None = None) -> Call[Moved]:
    """Start failed jobs afresh; one whose unique key another job holds is refused."""

    def steps() -> Steps[Moved]:
        moved = yield from _move("retry", "retry", ids, {"now": now}).steps()
        if len(ids) == 1 and moved.refused and moved.refused[0].state is JobState.FAILED:
            for job_id, holder in (yield Step("holders_of", {"ids": documents.numbers(ids)})):
                raise SlotTaken(job_id, holder)
        return moved

    return Call(steps, wakes=wakes.by_move)


def edit(job_id: int, changes: Edit, now: datetime | None = None) -> Call[Moved]:
    """Change a job; only a new cadence moves its next run."""
    params = {
        "id": job_id,
        "payload": changes.payload,
        "metadata": changes.metadata,
        "description": changes.description,
        "priority": changes.priority,
        "max_attempts": changes.max_attempts,
        "retry": None if changes.retry is None else changes.retry.encode(),
        "timeout_us": None if changes.timeout is None else documents.microseconds(changes.timeout),
        "cadence": None if changes.recurrence is None else changes.recurrence.encode(),
        "next_at": changes.next_at,
        "now": now,
    }

    def steps() -> Steps[Moved]:
        changed = set(rows.ids((yield Step("edit", params))))
        moved = _moved("edit", [job_id], changed, rows.jobs((yield Step("get_jobs", {"ids": f"[{job_id}]"}))))
        if moved.refused:
            _explain_refusal(moved.refused[0], changes)
        return moved

    return Call(steps, wakes=wakes.by_move)


def _explain_refusal(job: Job, changes: Edit) -> None:
    if job.state in {JobState.COMPLETED, JobState.CANCELLED}:
        return
    if changes.recurrence is not None and job.cadence is None:
        raise InvalidInput("cadence", str(changes.recurrence.cadence), f"job {job.id} is not recurring")
    raise InvalidInput("max_attempts", changes.max_attempts, f"job {job.id} has already used {job.attempt} attempts")
