"""Every operator verb on a job in every state: what is legal changes it, what is not changes nothing at all."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tests.store.builders import a_job, all_jobs, claim_one, end, enqueue_one, fail_for_good, failure, recurring, running
from windlass.core.job import Job, JobState
from windlass.core.transitions import Moved
from windlass.store import Store
from windlass.testing import FakeClock

HOUR = timedelta(hours=1)
Builder = Callable[[Store], Awaitable[int]]


def clock_of(store: Store) -> FakeClock:
    assert isinstance(store.means.clock, FakeClock)
    return store.means.clock


async def _scheduled(store: Store) -> int:
    return await enqueue_one(store, a_job(delay=HOUR))


async def _pending(store: Store) -> int:
    return await enqueue_one(store)


async def _retrying(store: Store) -> int:
    held = await running(store)
    await end(store, clock_of(store), held, failure())
    return held.id


async def _recurring(store: Store) -> int:
    return await enqueue_one(store, a_job(recurrence=recurring(), delay=HOUR))


async def _due_recurring(store: Store) -> int:
    return await enqueue_one(store, a_job(recurrence=recurring(), run_at=clock_of(store).now()))


async def _template(store: Store) -> int:
    return await enqueue_one(store, a_job(recurrence=recurring(), spawn=True, delay=HOUR))


async def _running(store: Store) -> int:
    return (await running(store)).id


async def _prefetched(store: Store) -> int:
    return (await running(store, started=False)).id


async def _running_recurring(store: Store) -> int:
    await _due_recurring(store)
    return (await claim_one(store)).id


async def _paused(store: Store) -> int:
    job_id = await _scheduled(store)
    await store.pause([job_id])
    return job_id


async def _paused_template(store: Store) -> int:
    job_id = await _template(store)
    await store.pause([job_id])
    return job_id


async def _completed(store: Store) -> int:
    held = await running(store)
    await end(store, clock_of(store), held)
    return held.id


async def _failed(store: Store) -> int:
    return (await fail_for_good(store, clock_of(store))).id


async def _cancelled(store: Store) -> int:
    job_id = await _scheduled(store)
    await store.cancel([job_id])
    return job_id


async def _stopping(store: Store) -> int:
    job_id = await _running(store)
    await store.cancel([job_id])
    return job_id


STATES: Mapping[str, Builder] = {
    # In this order: what is claimed on the way must not meet what waits.
    "running": _running,
    "prefetched": _prefetched,
    "running recurring": _running_recurring,
    "completed": _completed,
    "failed": _failed,
    "retrying": _retrying,
    "stopping": _stopping,
    "cancelled": _cancelled,
    "paused": _paused,
    "paused template": _paused_template,
    "template": _template,
    "scheduled": _scheduled,
    "recurring": _recurring,
    "due recurring": _due_recurring,
    "pending": _pending,
}
WAITING = {"pending", "scheduled", "retrying", "recurring", "due recurring", "template"}
PAUSED = {"paused", "paused template"}
RUNNING = {"running", "prefetched", "running recurring"}
CLOSED = {"completed", "failed", "cancelled", "stopping"}
ALL = set(STATES)
LENGTH = timedelta(minutes=15)

LEGAL: dict[str, tuple[dict[str, Any], set[str]]] = {
    "cancel": ({}, WAITING | PAUSED | RUNNING),
    "stop_run": ({}, {"running recurring"}),
    "pause": ({}, WAITING - {"pending"}),
    "resume": ({}, PAUSED),
    "disable": ({}, (WAITING - {"pending"}) | PAUSED | RUNNING),
    "enable": ({}, WAITING | PAUSED | RUNNING),
    "run_now": ({}, WAITING | PAUSED | RUNNING),
    "retry": ({}, {"failed", "retrying"}),
    "boost": ({"amount": 5}, ALL - {"completed", "cancelled", "stopping"}),
    "set_priority": ({"priority": 50}, ALL - {"completed", "cancelled", "stopping"}),
    "clone": ({}, CLOSED),
    "delete": ({}, ALL - RUNNING - {"stopping"}),
    "bury": ({"error": "enough"}, WAITING),
    "fail": ({"error": "enough", "will_retry": False}, WAITING | RUNNING),
    "take_lease": ({}, RUNNING | {"stopping"}),
}
OVERRIDES = {
    JobState.PENDING: ALL - {"template", "paused template"},
    JobState.RUNNING: ALL - {"template", "paused template"},
    JobState.COMPLETED: ALL,
    JobState.FAILED: ALL,
}


async def _everything(store: Store) -> dict[int, tuple[Any, ...]]:
    return {
        job.id: (job, await store.list_executions(job.id), await store.list_dead_letters(job.id)) for job in await all_jobs(store)
    }


async def _walk(store: Store, clock: FakeClock, verb: Callable[[int], Awaitable[Moved]], legal: set[str]) -> dict[str, Job]:
    """Bring one job into each state, then move each of them while all others look on."""
    jobs = {name: await build(store) for name, build in STATES.items()}
    clock.advance(seconds=1)
    changed = {}
    for name, job_id in jobs.items():
        before = await _everything(store)
        moved = await verb(job_id)
        after = await _everything(store)
        others = [other for other in before if other != job_id]
        assert [after[other] for other in others] == [before[other] for other in others], name
        if name in legal:
            assert (len(moved.changed), moved.refused, moved.missing) == (1, (), ()), name
            changed[name] = moved.one()
        else:
            assert (moved.changed, len(moved.refused), moved.missing) == ((), 1, ()), name
            assert after == before, name
    return changed


@pytest.mark.parametrize("verb", LEGAL)
async def test_a_verb_changes_exactly_what_it_may(store: Store, clock: FakeClock, verb: str) -> None:
    options, legal = LEGAL[verb]

    async def move(job_id: int) -> Moved:
        moved: Moved = await getattr(store, verb)([job_id], **options)
        return moved

    await _walk(store, clock, move, legal)


async def test_fail_by_policy_is_for_runs_and_what_is_due(store: Store, clock: FakeClock) -> None:
    legal = RUNNING | {"pending", "due recurring"}
    changed = await _walk(store, clock, lambda job_id: store.fail([job_id], "no", will_retry=True), legal)
    assert {job.state for job in changed.values()} == {JobState.SCHEDULED}


@pytest.mark.parametrize("status", OVERRIDES)
async def test_an_override_leads_from_anywhere_to_its_state(store: Store, clock: FakeClock, status: JobState) -> None:
    async def move(job_id: int) -> Moved:
        return await store.override_status([job_id], status, by="ann", lease_length=LENGTH)

    changed = await _walk(store, clock, move, OVERRIDES[status])
    assert {job.state for job in changed.values()} == {status}
    for job in changed.values():
        is_held = status is JobState.RUNNING
        assert (job.worker, job.lease_expires_at) == (("operator:ann", clock.now() + LENGTH) if is_held else (None, None))


@pytest.mark.parametrize("verb", LEGAL)
async def test_many_at_once_are_the_same_as_one_by_one(store: Store, verb: str) -> None:
    options, legal = LEGAL[verb]
    jobs = {await build(store): name for name, build in STATES.items()}
    moved = await getattr(store, verb)([*jobs, 10**9], **options)
    changed = [job.parent_id if verb == "clone" else job.id for job in moved.changed]
    assert {jobs[job_id] for job_id in changed} == legal
    assert {jobs[job.id] for job in moved.refused} == ALL - legal
    assert moved.missing == (10**9,)


async def test_a_refused_move_shows_the_row_as_it_is(store: Store) -> None:
    job_id = await _completed(store)
    [left] = (await store.boost([job_id], 1)).refused
    assert left == replace(await store.get(job_id))
