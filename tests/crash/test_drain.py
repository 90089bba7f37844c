"""Many processes drain one queue without stepping on each other."""

from __future__ import annotations

import time
from collections import Counter

from tests.crash import drainer
from tests.crash.processes import Fleet
from tests.support.raw import execute
from windlass.core.job import JobState, NewJob
from windlass.store import Store

JOBS = 20_000
PROCESSES = 8
BATCH = 100


async def test_eight_processes_run_each_of_twenty_thousand_jobs_once(store: Store, url: str, fleet: Fleet, backend: str) -> None:
    """Any error that reaches a caller, such as a locked database, ends its process and so fails the test."""
    ids: list[int] = []
    for _ in range(JOBS // 1000):
        ids += [enqueued.id for enqueued in await store.enqueue([NewJob(task="drain")] * 1000)]
    drainers = [fleet.start(f"drainer {place}", drainer, drainer.Options(url, f"d{place}", BATCH)) for place in range(PROCESSES)]
    await fleet.go(*drainers)
    began = time.monotonic()
    shares = [(await process.hear("ran"))[0] for process in drainers]
    took = time.monotonic() - began
    for process in drainers:
        assert await process.end() == 0, process.ending()
    print(f"{backend}: {JOBS / took:.0f} jobs/s through {PROCESSES} processes, shares {sorted(map(len, shares))}")
    ran = Counter(job_id for share in shares for job_id in share)
    assert sorted(ran) == ids
    assert set(ran.values()) == {1}
    assert [(count.state, count.jobs) for count in await store.count_jobs()] == [(JobState.COMPLETED, JOBS)]
    [[runs, jobs, completed]] = await execute(
        store,
        "select count(*), count(distinct job_id), sum(case when status = 'completed' then 1 else 0 end) from windlass_executions",
    )
    assert (runs, jobs, completed) == (JOBS, JOBS, JOBS)
    if backend == "postgres":
        assert await execute(store, "select deadlocks from pg_stat_database where datname = current_database()") == [(0,)]
