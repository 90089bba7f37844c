"""Who comes back too late is told so and changes nothing; who is late but unreplaced may still finish."""

from __future__ import annotations

import signal
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tests.crash import late_worker, worker
from tests.crash.conftest import is_long
from tests.crash.processes import Fleet, Process, until
from tests.support.stores import at_time
from windlass.core.job import Execution, Job, JobState, NewJob
from windlass.store import Store

LEASE_S = 1.0
VERBS = ["renew", "progress", "finish", "fail", "release", "stop"]
LANE = "late"

pytestmark = pytest.mark.parametrize("turn", range(8 if is_long() else 1))


async def test_late_worker_cannot_touch_a_job_that_another_took(store: Store, url: str, fleet: Fleet, turn: int) -> None:
    del turn
    done, taken = await enqueue(store, seconds=(0, 4))
    late = await stopped(fleet, url, jobs=2, verbs=VERBS)
    other = fleet.start("other", worker, worker.Options(url, "other", LEASE_S))
    await fleet.go(other)
    await until(lambda: is_in(store, done, JobState.COMPLETED), "the other worker to finish a job it reclaimed")
    await until(lambda: is_held_by(store, taken, "other"), "the other worker to run the other job")
    before = [await seen(store, job_id) for job_id in (done, taken)]
    answers = await resumed(late)
    assert answers == [[job_id, dict.fromkeys(VERBS, "lost")] for job_id in (done, taken)]
    assert [await seen(store, job_id) for job_id in (done, taken)] == before
    await until(lambda: is_in(store, taken, JobState.COMPLETED), "the other worker to finish the job it holds")
    for job_id in (done, taken):
        job, runs = await seen(store, job_id)
        assert [(run.status, run.reason, run.worker) for run in reversed(runs)] == [
            ("failed", "lease_expired", LANE),
            ("completed", None, "other"),
        ]
        assert job.last_cursor is None
    assert other.said("lost") == other.said("refused") == []


async def test_late_worker_cannot_touch_a_cancelled_job_but_is_told_to_stop(
    store: Store, url: str, fleet: Fleet, turn: int
) -> None:
    del turn
    [job_id] = await enqueue(store, seconds=(0,))
    late = await stopped(fleet, url, jobs=1, verbs=VERBS, lease_s=60)
    await store.cancel([job_id])
    answers = await resumed(late)
    # It holds the lease until it says that it has stopped; only that one word is still taken.
    assert answers == [[job_id, dict.fromkeys(VERBS, "lost") | {"renew": "should stop", "stop": "kept"}]]
    await check_cancelled(store, job_id)


async def test_late_worker_cannot_touch_a_cancelled_job_whose_lease_was_reclaimed(
    store: Store, url: str, fleet: Fleet, turn: int
) -> None:
    del turn
    [job_id] = await enqueue(store, seconds=(0,))
    late = await stopped(fleet, url, jobs=1, verbs=VERBS)
    await store.cancel([job_id])
    await fleet.go(fleet.start("other", worker, worker.Options(url, "other", LEASE_S)))
    await until(lambda: is_held_by(store, job_id, None), "the lease of the cancelled job to be reclaimed")
    assert await resumed(late) == [[job_id, dict.fromkeys(VERBS, "lost")]]
    await check_cancelled(store, job_id)


@pytest.mark.parametrize("verbs", [["finish"], ["renew", "progress", "finish"], ["fail"], ["release"]], ids="-".join)
async def test_expired_lease_that_nobody_took_can_still_be_used(
    store: Store, url: str, fleet: Fleet, *, turn: int, verbs: list[str]
) -> None:
    del turn
    [job_id] = await enqueue(store, seconds=(0,))
    late = await stopped(fleet, url, jobs=1, verbs=verbs, lease_s=0.2)
    await until(lambda: has_lapsed(store), "the lease to end")
    assert await resumed(late) == [[job_id, dict.fromkeys(verbs, "kept")]]
    ending = {"finish": "completed", "fail": "failed/error", "release": "cancelled/released"}[verbs[-1]]
    _, [run] = await seen(store, job_id)
    assert f"{run.status}{'/' + run.reason if run.reason else ''}" == ending


async def enqueue(store: Store, *, seconds: tuple[int, ...]) -> list[int]:
    made = [NewJob(task="work", lane=LANE, payload=f'{{"seconds":{each}}}') for each in seconds]
    return [enqueued.id for enqueued in await store.enqueue(made)]


async def stopped(fleet: Fleet, url: str, *, jobs: int, verbs: list[str], lease_s: float = LEASE_S) -> Process:
    """Start a worker and suspend it as soon as it has claimed."""
    late = fleet.start(LANE, late_worker, late_worker.Options(url, LANE, lease_s, jobs, verbs))
    await fleet.go(late)
    [claimed] = await late.hear("claimed")
    late.send(signal.SIGSTOP)
    assert len(claimed) == jobs
    return late


async def resumed(late: Process) -> list[Any]:
    """Let the worker go on and return what it was answered, job by job."""
    late.tell("go on")
    late.send(signal.SIGCONT)
    assert await late.end() == 0, late.ending()
    return late.said("tried")


async def seen(store: Store, job_id: int) -> tuple[Job, list[Execution]]:
    """Read a job without what its holder's heartbeats move."""
    job = await store.get(job_id)
    return replace(job, lease_expires_at=None, started_at=None), await store.list_executions(job_id)


async def is_in(store: Store, job_id: int, state: JobState) -> bool:
    return (await store.get(job_id)).state is state


async def is_held_by(store: Store, job_id: int, name: str | None) -> bool:
    return (await store.get(job_id)).worker == name


async def has_lapsed(store: Store) -> bool:
    # Half a second past its end, so that nothing could take it for just in time.
    return bool(await at_time(store, await store.clock() - timedelta(seconds=0.5)).lapsed())


async def check_cancelled(store: Store, job_id: int) -> None:
    job, runs = await seen(store, job_id)
    assert (job.state, job.token, job.last_cursor) == (JobState.CANCELLED, None, None)
    assert [(run.status, run.reason, run.result_json) for run in runs] == [("cancelled", "cancelled", None)]
