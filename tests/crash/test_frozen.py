"""A worker that stood still starts nothing that may be another worker's by now."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess

import pytest

from tests.crash.conftest import is_long
from tests.crash.processes import until
from tests.crash.test_real_worker import LEASE_S, Site, all_in, enqueue, site
from windlass.core.job import JobState
from windlass.store import Store

__all__ = ["site"]

SLOTS = 5
JOBS = 25_000 if is_long() else 2_000


@pytest.mark.parametrize("task", ["once", "once_in_thread"])
async def test_a_thawed_worker_starts_no_job_that_another_has_started(site: Site, store: Store, task: str) -> None:
    frozen = site.start("--alone", "--pools", f"*={SLOTS}")
    ids = [job_id for _ in range(0, JOBS, 1_000) for job_id in await enqueue(store, task, 1_000)]
    await until(lambda: site.count("end") > 200, "the first worker to be busy")
    await freeze(frozen, site, store)
    begun = len(site.lines("start"))
    site.start("--alone", "--pools", f"*={SLOTS}")
    await until(lambda: site.count("end") >= JOBS - SLOTS, "the other worker to take over", within=120)
    frozen.send_signal(signal.SIGCONT)
    await asyncio.sleep(LEASE_S)
    await all_in(store, ids, JobState.COMPLETED, within=120)
    again = {job for job, pid in site.lines("start")[begun:] if pid == frozen.pid}
    others = {job for job, pid in site.lines("start") if pid != frozen.pid}
    assert again & others == set()


async def freeze(process: subprocess.Popen[bytes], site: Site, store: Store) -> None:
    """Stop a worker while each of its slots is inside a handler, and between two of its transactions.

    A slot that stands between its last look at the lease and the first line of the handler will start when it wakes: no
    process can do anything about that, only a fence where the effect is. On SQLite nobody could write while the worker
    stands still inside a transaction.
    """
    while True:
        process.send_signal(signal.SIGSTOP)
        os.waitpid(process.pid, os.WUNTRACED)  # noqa: ASYNC222 - it stops at once
        if site.count("start") - site.count("end") == SLOTS and await can_write(store):
            return
        process.send_signal(signal.SIGCONT)
        await asyncio.sleep(0.003)


async def can_write(store: Store) -> bool:
    try:
        async with asyncio.timeout(0.5):
            await store.settings.set("MAX_ATTEMPTS_DEFAULT", 5)
    except TimeoutError:
        return False
    return True
