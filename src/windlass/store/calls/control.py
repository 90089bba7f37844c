"""The verbs of operators: each answers with the rows its own statement left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from random import Random
from typing import Any

from windlass.core.cadence import EPOCH, Recurrence
from windlass.core.checks import check_range
from windlass.core.edit import EditedFields, merged
from windlass.core.job import INT32, MAX_TEXT, Edit, Job, JobState
from windlass.core.job_verbs import HIGHEST_BOOST
from windlass.core.payload import sanitise_text
from windlass.core.transitions import MOVES, Moved
from windlass.errors import InvalidInput
from windlass.store import batches, rows
from windlass.store.calls import wakes
from windlass.store.calls.call import Call, Means, Step, Steps
from windlass.store.calls.move import Move, answer, move, numbers, possible, was_moved

_FAILED = frozenset({JobState.FAILED})
_EDITABLE = MOVES["edit"].sources


def _move(name: str, query: str, ids: Sequence[int], params: Mapping[str, Any]) -> Move:
    """Make a move of one query."""

    def changes(_: Means) -> Steps[set[int]]:
        # Locked first: only a statement that begins after the wait sees what the holder before us has left.
        yield Step("lock_jobs", {"ids": numbers(ids)})
        return set(rows.ids((yield Step(query, {"ids": numbers(ids), **params}))))

    return move(name, ids, changes)


def cancel(ids: Sequence[int], reason: str | None = None) -> Move:
    """Cancel jobs at once; running ones keep their lease until they have stopped."""
    return _move("cancel", "cancel", ids, {"reason": None if reason is None else sanitise_text(reason, MAX_TEXT)})


def stop_run(ids: Sequence[int]) -> Move:
    """Ask running recurring jobs to end this run; their cadence goes on."""
    return _move("stop", "stop_run", ids, {})


def pause(ids: Sequence[int]) -> Move:
    """Hold waiting jobs until they are resumed."""
    return _move("pause", "pause", ids, {})


def resume(ids: Sequence[int]) -> Move:
    """Let paused jobs go on; recurring ones count anew from now."""

    def changes(means: Means) -> Steps[set[int]]:
        # Locked first: the next time is computed from a cadence that may not change meanwhile.
        yield Step("lock_jobs", {"ids": numbers(ids)})
        [[moment]] = yield Step("clock", {})
        found = rows.jobs((yield Step("get_jobs", {"ids": numbers(ids)})))
        batch = batches.array(_resumed(job, moment, means.rng) for job in found if job.state is JobState.PAUSED)
        return set(rows.ids((yield Step("resume", {"jobs": batch}))))

    return move("resume", ids, changes)


def _resumed(job: Job, now: datetime, rng: Random) -> str:
    try:
        return f'{{"id":{job.id}{_next_slot(job.recurrence, now, rng)}}}'
    except InvalidInput:
        # A cadence that cannot be read keeps its time; the run that follows has the error.
        return f'{{"id":{job.id}}}'


def _next_slot(rule: Recurrence | None, now: datetime, rng: Random) -> str:
    if rule is None:
        return ""
    slot_at = rule.first(now)
    run_at = rule.run_time(slot_at, rng)
    return f',"next_us":{batches.microseconds(run_at)},"slot_us":{batches.microseconds(slot_at)}'


def disable(ids: Sequence[int]) -> Move:
    """Stop jobs from running by themselves; a running one finishes its run first."""
    return _move("disable", "disable", ids, {})


def enable(ids: Sequence[int]) -> Move:
    """Undo `disable`; the next time is kept, so an overdue job is due at once."""
    return _move("enable", "enable", ids, {})


def run_now(ids: Sequence[int]) -> Move:
    """Run waiting jobs now, running ones once more after their run."""
    return _move("run now", "run_now", ids, {})


def retry(ids: Sequence[int]) -> Move:
    """Start failed jobs afresh; one whose unique key another job holds is refused."""

    def changes(_: Means) -> Steps[set[int]]:
        yield Step("lock_jobs", {"ids": numbers(ids)})
        return (yield from restart(ids, "retried"))

    return move("retry", ids, changes, contested=_FAILED)


def restart(ids: Sequence[int], closed_reason: str) -> Steps[set[int]]:
    """Give failed jobs, locked by this transaction, a fresh start and close their letters with a reason."""
    params = {"ids": numbers(ids), "closed_reason": closed_reason}
    return set(rows.ids((yield Step("retry", params))))


def boost(ids: Sequence[int], amount: int) -> Move:
    """Raise priorities, up to 100; one that is higher already stays."""
    check_range("amount", amount, 1, HIGHEST_BOOST)
    return _move("boost", "boost", ids, {"amount": amount, "most": HIGHEST_BOOST})


def set_priority(ids: Sequence[int], priority: int) -> Move:
    """Set the priority of jobs; they also return to this one."""
    check_range("priority", priority, -INT32 - 1, INT32)
    return _move("set priority", "set_priority", ids, {"priority": priority})


def delete(ids: Sequence[int]) -> Move:
    """Remove jobs with all that belongs to them but their items; one whose lease is held stays.

    There is nothing left to show, so the answer has the jobs as they were.
    """

    def changes(_: Means) -> Steps[set[int]]:
        return set(rows.ids((yield Step("delete_jobs", {"ids": numbers(ids)}))))

    def steps(means: Means) -> Steps[Moved]:
        yield Step("lock_jobs", {"ids": numbers(ids)})
        before = rows.jobs((yield Step("get_jobs", {"ids": numbers(ids)})))
        return answer("delete", ids, (yield from changes(means)), before)

    return Move(steps=steps, name="delete", changes=changes, deed=was_moved)


def edit(job_id: int, changes: Edit) -> Call[Moved]:
    """Change a job; only a new cadence moves its next run."""
    params = {
        "id": job_id if possible([job_id]) else 0,
        "metadata": changes.metadata,
        "description": changes.description,
        "priority": changes.priority,
        "max_attempts": changes.max_attempts,
        "timeout_us": None if changes.timeout is None else batches.microseconds(changes.timeout),
    }

    def steps(_: Means) -> Steps[Moved]:
        became = yield from _became(job_id, changes)
        changed = set(rows.ids((yield Step("edit", params | became._asdict()))))
        if changed and changes.is_enabled is not None:
            yield from _switch(job_id, is_on=changes.is_enabled)
        moved = answer("edit", [job_id], changed, rows.jobs((yield Step("get_jobs", {"ids": numbers([job_id])}))))
        if moved.refused:
            _explain_refusal(moved.refused[0], changes)
        return moved

    return Call(steps, wakes=wakes.by_move, deed=was_moved)


def _became(job_id: int, changes: Edit) -> Steps[EditedFields]:
    if not changes.is_partial:
        return merged(changes, None, EPOCH)
    # Locked first: what only changes a part is worked out from a row that may not change meanwhile.
    yield Step("lock_jobs", {"ids": numbers([job_id])})
    [[moment]] = yield Step("clock", {})
    found = rows.jobs((yield Step("get_jobs", {"ids": numbers([job_id])})))
    return merged(changes, found[0] if found and found[0].state in _EDITABLE else None, moment)


def _switch(job_id: int, *, is_on: bool) -> Steps[None]:
    """Let a schedule go on or stop it; one that has ended has nothing to switch."""
    [job] = rows.jobs((yield Step("get_jobs", {"ids": numbers([job_id])})))
    if job.cadence is None and is_on:
        raise InvalidInput("schedule_enabled", is_on, f"job {job_id} is not recurring")
    if job.cadence is None or job.is_enabled is is_on:
        return
    name = "enable" if is_on else "disable"
    if not (yield Step(name, {"ids": numbers([job_id])})):
        answer(name, [job_id], set(), [job]).one()


def _explain_refusal(job: Job, changes: Edit) -> None:
    if job.state not in _EDITABLE:
        return
    if changes.recurrence is not None and job.cadence is None:
        raise InvalidInput("cadence", str(changes.recurrence.cadence), f"job {job.id} is not recurring")
    raise InvalidInput("max_attempts", changes.max_attempts, f"job {job.id} has already used {job.attempt} attempts")
