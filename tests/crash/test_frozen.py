"""A worker that stood still starts nothing that may be another worker's by now."""

from __future__ import annotations

import asyncio
import signal

import pytest

from tests.crash.conftest import is_long
from tests.crash.processes import until
from tests.crash.test_real_worker import LEASE_S, Site, all_in, enqueue, site
from windlass.core.job import JobState
from windlass.store import SqlStore

__all__ = ["site"]

JOBS = 25_000 if is_long() else 4_000


@pytest.mark.parametrize("task", ["once", "once_in_thread"])
async def test_a_thawed_worker_starts_no_job_that_another_has_started(site: Site, store: SqlStore, task: str) -> None:
    frozen = site.start("--alone", "--pools", "*=5")
    ids = [job_id for _ in range(0, JOBS, 1_000) for job_id in await enqueue(store, task, 1_000)]
    await until(lambda: len(site.lines("end")) > 200, "the first worker to be busy")
    frozen.send_signal(signal.SIGSTOP)
    begun = len(site.lines("start"))
    site.start("--alone", "--pools", "*=5")
    await until(lambda: len(site.lines("end")) >= JOBS - 5, "the other worker to take over", within=120)
    frozen.send_signal(signal.SIGCONT)
    await asyncio.sleep(LEASE_S)
    await all_in(store, ids, JobState.COMPLETED, within=120)
    again = {job for job, pid in site.lines("start")[begun:] if pid == frozen.pid}
    others = {job for job, pid in site.lines("start") if pid != frozen.pid}
    assert again & others == set()
