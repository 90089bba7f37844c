"""A job that kills its workers is put aside, and takes no neighbour with it."""

from __future__ import annotations

import signal

import pytest

from tests.crash import fragile_worker
from tests.crash.processes import Fleet
from windlass.core.job import JobState, NewJob, RunReason, RunStatus
from windlass.store import Store

LEASE_S = 1.0
NEIGHBOURS = 99
MAX_ATTEMPTS = 3


@pytest.mark.parametrize("reports", [False, True], ids=["start-unreported", "start-reported"])
async def test_job_that_kills_its_worker_ends_as_a_dead_letter_and_its_neighbours_complete(
    store: Store, url: str, fleet: Fleet, *, reports: bool
) -> None:
    poison, neighbours = await enqueue(store)
    deaths, claims = await supervise(fleet, fragile_worker.Options(url, "fragile", LEASE_S, NEIGHBOURS + 1, reports))
    assert claims[0] == NEIGHBOURS + 1, "the poison was not claimed beside its neighbours"
    # A first death that nobody could foresee is charged to nobody; from then on the poison is claimed alone and charged.
    assert deaths == MAX_ATTEMPTS + (not reports)
    job = await store.get(poison)
    assert (job.state, job.attempt, job.executions) == (JobState.FAILED, MAX_ATTEMPTS, MAX_ATTEMPTS)
    runs = await store.list_executions(poison)
    assert [(run.attempt, run.status, run.reason) for run in reversed(runs)] == [
        (attempt, RunStatus.FAILED, RunReason.LEASE_EXPIRED) for attempt in range(1, MAX_ATTEMPTS + 1)
    ]
    [letter] = await store.list_dead_letters(poison)
    assert letter.deaths == 1
    for job_id in neighbours:
        job = await store.get(job_id)
        assert (job.state, job.attempt, job.executions) == (JobState.COMPLETED, 1, 1), f"job {job_id}: {job}"
        assert [run.status for run in await store.list_executions(job_id)] == [RunStatus.COMPLETED]


async def enqueue(store: Store) -> tuple[int, list[int]]:
    made = [NewJob(task="work", max_attempts=MAX_ATTEMPTS)] * (NEIGHBOURS + 1)
    place = NEIGHBOURS // 2
    made[place] = NewJob(task="work", max_attempts=MAX_ATTEMPTS, payload='{"poison":true}')
    ids = [enqueued.id for enqueued in await store.enqueue(made)]
    return ids[place], ids[:place] + ids[place + 1 :]


async def supervise(fleet: Fleet, options: fragile_worker.Options) -> tuple[int, list[int]]:
    """Restart the worker whenever it dies; returns how often that was, and how many jobs each claim took."""
    deaths = 0
    claims: list[int] = []
    while True:
        process = fleet.start(f"fragile {deaths}", fragile_worker, options)
        await fleet.go(process)
        code = await process.end()
        claims += process.said("claimed")
        if code == 0:
            return deaths, claims
        assert code == -signal.SIGKILL, process.ending()
        deaths += 1
        assert deaths < 3 * MAX_ATTEMPTS, "the poison goes on killing"
