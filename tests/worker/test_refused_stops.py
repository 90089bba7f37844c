"""A report that the database refuses holds up no other."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

from tests.support.raw import execute
from tests.worker.rig import Rig
from windlass.core.job import JobState
from windlass.core.topic import Topic


async def refuse_stop(rig: Rig, job_id: int) -> None:
    """Let the database refuse every word that this cancelled run has stopped."""
    refused = f"old.id = {job_id} and old.state = 'cancelled' and new.token is null"
    if rig.url.startswith("sqlite"):
        body = "select raise(abort, 'refused by the test'); end"
        await execute(rig.store, f"create trigger refuse_stop before update on windlass_jobs when {refused} begin {body}")
        return
    body = "begin raise check_violation using message = 'refused by the test'; end"
    await execute(rig.store, f"create function refuse_stop() returns trigger language plpgsql as $${body}$$")
    when = f"before update on windlass_jobs for each row when ({refused})"
    await execute(rig.store, f"create trigger refuse_stop {when} execute function refuse_stop()")


async def accept_stops(rig: Rig) -> None:
    on = "" if rig.url.startswith("sqlite") else " on windlass_jobs"
    await execute(rig.store, f"drop trigger refuse_stop{on}")


async def test_a_refused_report_of_a_stopped_run_ends_neither_the_worker_nor_other_reports(rig: Rig) -> None:
    running: set[int] = set()

    async def patient(number: int) -> None:
        running.add(number)
        await asyncio.sleep(60)

    async def quick() -> None: ...

    rig.task(patient)
    rig.task(quick)
    ids = [await rig.enqueue("patient", {"number": number}) for number in range(3)]
    worker = await rig.start(pools="*=3")

    async def begun() -> bool:
        return running == {0, 1, 2}

    await rig.until(begun)
    await refuse_stop(rig, ids[1])
    await rig.store.cancel(ids)
    worker.wake(Topic.CONTROL)

    def released(*job_ids: int) -> Awaitable[None]:
        async def all_are() -> bool:
            return all([(await rig.store.get(job_id)).token is None for job_id in job_ids])

        return rig.until(all_are)

    await released(ids[0], ids[2])
    assert (await rig.ended(await rig.enqueue("quick"))).state is JobState.COMPLETED
    await worker.idle()
    await accept_stops(rig)
    # Nobody reports that one again: its lease runs out.
    await released(ids[1])
