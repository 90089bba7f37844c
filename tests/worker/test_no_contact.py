"""An exclusive run whose lease cannot be renewed is stopped, and its job goes back as soon as the store is there again."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from tests.worker.rig import Rig
from tests.worker.test_last_reports import locked
from windlass.core.job import JobState, RunReason

LEASE = timedelta(seconds=2)


async def test_a_run_that_was_stopped_is_given_back_and_not_left_to_its_lease(rig: Rig) -> None:
    stopped = asyncio.Event()

    async def waits() -> None:
        if stopped.is_set():
            return
        try:
            await asyncio.sleep(60)
        finally:
            stopped.set()

    rig.task(waits, is_exclusive=True)
    job_id = await rig.enqueue("waits")
    await rig.start(lease=LEASE)
    await rig.ended(job_id, JobState.RUNNING)
    async with locked(rig.url):
        async with asyncio.timeout(2 * LEASE.total_seconds()):
            await stopped.wait()

    # Nobody reclaims here: only the worker itself can have given it back.
    async def is_back() -> bool:
        await rig.store.promote()
        return (await rig.store.get(job_id)).state is JobState.COMPLETED

    await rig.until(is_back)
    runs = await rig.executions(job_id)
    assert sorted((run.number, run.reason, run.attempt) for run in runs) == [(1, RunReason.RELEASED, 1), (2, None, 1)]


async def test_a_result_that_came_too_late_for_renewal_counts_while_the_lease_is_ours(rig: Rig) -> None:
    async def stubborn() -> str:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            return "done"
        return "never"

    rig.task(stubborn, is_exclusive=True)
    job_id = await rig.enqueue("stubborn")
    await rig.start(lease=LEASE)
    await rig.ended(job_id, JobState.RUNNING)
    async with locked(rig.url):
        await asyncio.sleep(LEASE.total_seconds() + 1)
    await rig.ended(job_id, JobState.COMPLETED)
    [run] = await rig.executions(job_id)
    assert run.result_json == '"done"'
