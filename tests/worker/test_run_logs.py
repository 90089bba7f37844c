"""The log of a run can be read while it goes on."""

from __future__ import annotations

import asyncio
import logging
import threading
from datetime import timedelta

from tests.support.raw import execute
from tests.worker.rig import Rig
from windlass.core.job import Lease, NewJob, RunStatus
from windlass.worker.log_recorder import MOST_BYTES, LogRecorder, RunLog
from windlass.worker.logs import CUT, MAX_EXCERPT, LogExcerpt

log = logging.getLogger("app")


async def test_what_a_coroutine_and_a_thread_log_is_shown_while_they_run(rig: Rig) -> None:
    gate, end, door = asyncio.Event(), asyncio.Event(), threading.Event()

    async def crawl() -> None:
        log.warning("crawl has begun\x00")
        await gate.wait()
        log.warning("crawl goes on")
        await end.wait()

    def count() -> None:
        for number in range(600):
            log.warning("counted %d", number)
        assert door.wait(60)

    rig.task(crawl)
    rig.task(count)
    jobs = [await rig.enqueue("crawl"), await rig.enqueue("count")]
    await rig.start()

    async def shows(job: int, text: str) -> bool:
        runs = await rig.store.list_executions(job)
        return bool(runs) and text in (runs[0].log_excerpt or "")

    await rig.until(lambda: shows(jobs[0], r"app: crawl has begun\u0000"))
    await rig.until(lambda: shows(jobs[1], "app: counted 599"))
    gate.set()
    await rig.until(lambda: shows(jobs[0], "app: crawl goes on"))
    [crawling], [counting] = [await rig.store.list_executions(job) for job in jobs]
    assert (crawling.status, counting.status) == (RunStatus.RUNNING, RunStatus.RUNNING)
    begun, goes_on = (crawling.log_excerpt or "").splitlines()
    assert ("crawl has begun" in begun, "crawl goes on" in goes_on) == (True, True)
    cut, *lines = (counting.log_excerpt or "").splitlines()
    assert cut == CUT
    assert len((counting.log_excerpt or "").encode()) <= MAX_EXCERPT
    assert lines[-1].endswith("counted 599")
    door.set()
    end.set()
    await rig.ended(jobs[1])
    [ended] = await rig.executions(jobs[1])
    assert (ended.status, ended.log_excerpt) == (RunStatus.COMPLETED, counting.log_excerpt)


async def test_of_a_short_run_nothing_is_recorded_before_its_end(rig: Rig) -> None:
    async def quick() -> None:
        log.warning("quick")

    rig.task(quick)
    jobs = [await rig.enqueue("quick") for _ in range(5)]
    worker = await rig.start(lease=timedelta(minutes=5))
    for job in jobs:
        await rig.ended(job)
        [run] = await rig.executions(job)
        assert "app: quick" in (run.log_excerpt or "")
    await worker.idle()
    assert await execute(rig.store, "select count(*) from windlass_run_logs") == [(0,)]


async def test_what_does_not_fit_into_one_round_comes_first_in_the_next(rig: Rig) -> None:
    most = MOST_BYTES // MAX_EXCERPT
    await rig.store.enqueue([NewJob(task="work") for _ in range(most + 6)])
    lease = Lease(1, "worker-1", timedelta(minutes=1))
    jobs = await rig.store.claim(await rig.store.slices(), most + 6, lease)
    logs = [RunLog(job.id, job.token, LogExcerpt()) for job in jobs]
    for one in logs:
        for _ in range(10):
            one.excerpt.add("x" * 1600)
    recorder = LogRecorder(rig.blocking_store, lambda: logs)

    async def recorded() -> set[int]:
        return {job for (job,) in await execute(rig.store, "select job_id from windlass_run_logs where log_excerpt <> ''")}

    await asyncio.to_thread(recorder.record)
    first = await recorded()
    assert most <= len(first) < len(logs)
    for one in logs:
        one.excerpt.add("more")
    await asyncio.to_thread(recorder.record)
    assert await recorded() == {job.id for job in jobs}
    await execute(rig.store, "update windlass_run_logs set log_excerpt = ''")
    for _ in range(2):
        await asyncio.to_thread(recorder.record)
    # What has not grown since it was recorded is not written again.
    again = await recorded()
    assert again
    assert len(again) < len(logs)
    await asyncio.to_thread(recorder.record)
    assert await recorded() == again
