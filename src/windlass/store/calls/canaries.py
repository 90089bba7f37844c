"""The verbs of canary requeues; every step is one transaction that holds the canary's row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from windlass.core.audit import Actor, Deed
from windlass.core.canary import ACTIVE, MOST_CANARIES, Canary, CanaryRun, CanaryState, judge
from windlass.core.checks import check_range, check_text
from windlass.core.ids import MAX_JOB
from windlass.core.job import MAX_NAME, MAX_TEXT
from windlass.core.letters import LetterFilter
from windlass.core.payload import encode_object, sanitise_text
from windlass.core.topic import Topic
from windlass.errors import CanaryEnded, CanaryNotFound, CanaryRunning, InvalidInput, LetterGroupNotFound, StoreConflict
from windlass.store import batches, rows
from windlass.store.calls.call import Call, Means, Step, Steps, add_audit, single
from windlass.store.calls.letters import Return, bring_back, page_params
from windlass.store.calls.related import newest_runs
from windlass.store.rows import SHAPES, Row, Shape

MOST_LISTED = 500
MOST_ACTIVE = 100
_KEPT = 1000
_CHORE = "canaries"
_SHAPE = Shape.of(Canary)
SHAPES |= {"get_canary": _SHAPE, "list_canaries": _SHAPE, "lock_canary": _SHAPE}


def start(wanted: LetterFilter, *, size: int, by: str) -> Call[Canary]:
    """Bring back the jobs of the first `size` open letters a filter matches; the others follow once those have succeeded.

    Letters that come later are not meant. Raises LetterGroupNotFound, CanaryRunning where the same filter has one under way, and
    InvalidInput where no letter could be brought back.
    """
    check_range("size", size, 1, MOST_CANARIES)
    check_text("by", by, MAX_NAME)
    if wanted.ids is not None:
        raise InvalidInput("ids", wanted.ids, "cannot be given here; name a fingerprint or a task")

    def steps(means: Means) -> Steps[Canary]:
        chosen = {"task": wanted.task, "fingerprint": wanted.fingerprint}
        # Before the letters, as in every later step: of two that start at the same time the second waits here and is refused.
        started = yield Step("start_canary", {**chosen, "by": by})
        if not started:
            for row in (yield Step("active_canary", chosen)):
                raise CanaryRunning(row[0])
            raise StoreConflict("a canary of the same letters has just ended; try again")
        [[until]] = yield Step("highest_letter", {})
        ids = yield from _page(wanted, 0, until, size)
        met = (yield from bring_back(ids, means)) if ids else {}
        tries = yield from _tries(met)
        if not tries:
            yield from _refuse(wanted, ids)
        runs = batches.array(f"[{one.letter_id},{one.job_id},{one.runs}]" for one in tries)
        counts = {"size": len(tries), "requeued": len(tries), "refused": len(ids) - len(tries)}
        params = {"id": started[0][0], **counts, "runs": runs, "after": ids[-1], "until": until}
        yield Step("fill_canary", params)
        yield Step("forget_canaries", {"keep": _KEPT})
        yield Step("hasten_chore", {"chore": _CHORE})
        return _canary((yield Step("get_canary", {"id": started[0][0]}))[0])

    return Call(steps, wakes=lambda _: tuple(Topic), deed=lambda canary: _deed("start canary", canary))


def _page(wanted: LetterFilter, after: int, until: int, limit: int) -> Steps[list[int]]:
    query = "page_letters" if wanted.fingerprint is None else "page_letters_alike"
    return rows.ids((yield Step(query, page_params(wanted, after, until, limit))))


def _tries(met: dict[int, Return]) -> Steps[list[CanaryRun]]:
    back = {letter_id: one.job_id for letter_id, one in met.items() if one.holder is None}
    jobs = rows.jobs((yield Step("get_jobs", {"ids": batches.numbers(set(back.values()))}))) if back else []
    runs = {job.id: job.executions for job in jobs}
    return [CanaryRun(letter_id, job_id, runs[job_id]) for letter_id, job_id in back.items()]


def _refuse(wanted: LetterFilter, ids: Sequence[int]) -> Steps[None]:
    if wanted.fingerprint is not None and not (yield Step("has_kind", {"fingerprint": wanted.fingerprint}))[0][0]:
        raise LetterGroupNotFound(wanted.fingerprint)
    field, value = ("task", wanted.task) if wanted.fingerprint is None else ("fingerprint", wanted.fingerprint)
    if ids:
        raise InvalidInput(field, value, f"the jobs of dead letters {ids} cannot come back; requeue them one by one to see why")
    raise InvalidInput(field, value, "matches no open dead letter; `windlass dead list --status open` lists those there are")


def get(canary_id: int) -> Call[Canary]:
    """Read one canary requeue; raises CanaryNotFound."""
    return single("get_canary", {"id": _possible(canary_id)}, lambda found: _found(canary_id, found), is_read=True)


def list_canaries(*, is_active: bool | None = None, limit: int = 50) -> Call[list[Canary]]:
    """Read canary requeues, the newest first."""
    check_range("limit", limit, 1, MOST_LISTED)
    params = {"is_active": is_active, "limit": limit}
    return single("list_canaries", params, lambda found: [_canary(row) for row in found], is_read=True)


def list_active() -> Call[list[int]]:
    """Read the numbers of those that are under way, the oldest first."""
    return single("active_canaries", {"limit": MOST_ACTIVE}, rows.ids, is_read=True)


def cancel(canary_id: int) -> Call[Canary]:
    """Leave the letters that were not brought back yet where they are; raises CanaryNotFound and CanaryEnded."""

    def steps(_: Means) -> Steps[Canary]:
        canary = _found(canary_id, (yield Step("get_canary", {"id": _possible(canary_id)})))
        if not (yield Step("cancel_canary", {"id": canary.id})):
            now = _found(canary_id, (yield Step("get_canary", {"id": canary.id})))
            raise CanaryEnded(now.id, now.state)
        return _found(canary_id, (yield Step("get_canary", {"id": canary.id})))

    return Call(steps, deed=lambda canary: _deed("cancel canary", canary))


def advance(canary_id: int, limit: int = batches.MAX_ROWS) -> Call[Canary | None]:
    """Do the next step of a canary requeue: check how its first letters ended, or bring back the next batch.

    None when there is nothing to do: it is over, another process is at it, or its first letters have not ended.
    """
    check_range("limit", limit, 1, batches.MAX_ROWS)

    def steps(means: Means) -> Steps[Canary | None]:
        found = yield Step("lock_canary", {"id": _possible(canary_id)})
        if not found:
            return None
        canary = _canary(found[0])
        after = (yield from _judged(canary)) if canary.state is CanaryState.TRYING else (yield from _sent(canary, limit, means))
        if after == canary:
            return None
        yield Step("move_canary", _moved(after))
        if after.state is not CanaryState.REQUEUING or after.requeued > canary.requeued:
            yield add_audit(Actor(canary.created_by), _deed(_action(after), after))
        return _canary((yield Step("get_canary", {"id": canary.id}))[0])

    return Call(steps, wakes=_wakes)


def _judged(canary: Canary) -> Steps[Canary]:
    ids = [one.job_id for one in canary.runs]
    jobs = {job.id: job for job in rows.jobs((yield Step("get_jobs", {"ids": batches.numbers(ids)})))}
    runs = yield from newest_runs(ids)
    verdict = judge(canary.runs, jobs, [run for some in runs.values() for run in some])
    after = replace(canary, succeeded=verdict.succeeded)
    if verdict.failure is not None:
        return replace(after, state=CanaryState.STOPPED, reason=sanitise_text(verdict.failure, MAX_TEXT))
    return replace(after, state=CanaryState.REQUEUING) if verdict.succeeded == len(canary.runs) else after


def _sent(canary: Canary, limit: int, means: Means) -> Steps[Canary]:
    wanted = LetterFilter(task=canary.task, fingerprint=canary.fingerprint)
    ids = yield from _page(wanted, canary.after_letter, canary.until_letter, limit)
    if not ids:
        return replace(canary, state=CanaryState.DONE)
    met = yield from bring_back(ids, means)
    back = sum(one.holder is None for one in met.values())
    return replace(canary, after_letter=ids[-1], requeued=canary.requeued + back, refused=canary.refused + len(ids) - back)


def _moved(canary: Canary) -> dict[str, object]:
    counts = {"succeeded": canary.succeeded, "requeued": canary.requeued, "refused": canary.refused}
    return {"id": canary.id, "state": canary.state, "after": canary.after_letter, "reason": canary.reason, **counts}


def _action(canary: Canary) -> str:
    return "requeue" if canary.state is CanaryState.REQUEUING else f"canary {canary.state}"


def _deed(action: str, canary: Canary) -> Deed:
    counts = {"requeued": canary.requeued, "refused": canary.refused, "reason": canary.reason}
    details = {"task": canary.task, "fingerprint": canary.fingerprint, "size": canary.size, **counts}
    return Deed(action, f"canary:{canary.id}", details=encode_object(details))


def _wakes(canary: Canary | None) -> tuple[Topic, ...]:
    return tuple(Topic) if canary is not None and canary.state in ACTIVE else ()


def _possible(canary_id: int) -> int:
    return canary_id if 0 < canary_id <= MAX_JOB else 0


def _found(canary_id: int, found: Sequence[Row]) -> Canary:
    if not found:
        raise CanaryNotFound(canary_id)
    return _canary(found[0])


def _canary(row: Row) -> Canary:
    return Canary(row[0], CanaryState(row[1]), *row[2:])
