"""The jobs of a worker that was killed are taken back at once, and not when their leases end."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import timedelta

import pytest

from tests.crash import worker
from tests.crash.processes import Fleet, until
from tests.crash.worker import new_lease
from windlass.core.job import JobState, NewJob
from windlass.core.worker import Neighbour, NewWorker
from windlass.process import current_process, is_gone
from windlass.store import Store
from windlass.upkeep.reclaimer import Reclaimer

LEASE = timedelta(seconds=20)
JOBS = 20


async def test_jobs_of_a_killed_worker_run_again_within_seconds(store: Store, url: str, fleet: Fleet) -> None:
    lease_s = LEASE.total_seconds()
    doomed = fleet.start("doomed", worker, worker.Options(url, "doomed", lease_s, slots=JOBS))
    await fleet.go(doomed)
    await store.enqueue([NewJob(task="work", payload='{"seconds":600}') for _ in range(JOBS)])
    await doomed.hear("ran", count=JOBS)
    other = fleet.start("other", worker, worker.Options(url, "other", lease_s, slots=JOBS))
    await fleet.go(other)
    doomed.send(signal.SIGKILL)
    killed_at = time.monotonic()
    await until(lambda: len(other.said("ran")) == JOBS, "the other worker to run the jobs of the killed one")
    assert time.monotonic() - killed_at < 5


async def test_a_worker_that_said_goodbye_holds_nothing(store: Store) -> None:
    [job_id] = await claimed_by(store, "gone")
    await store.workers.register(NewWorker(id="gone", host="h", pid=1, version="1"))
    reclaimer = Reclaimer(store, lease=LEASE)
    assert await reclaimer.round() == []
    await store.workers.stopped("gone")
    assert await reclaimer.round() == [job_id]
    job = await store.get(job_id)
    assert (job.state, job.crashes) == (JobState.SCHEDULED, 1)


async def test_a_lost_worker_is_named_in_the_log(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    process = current_process()
    assert process is not None
    gone = NewWorker(id="gone", host="h", pid=os.getpid(), version="1", process=process._replace(start=process.start + 1))
    await store.workers.register(gone)
    await store.workers.register(NewWorker(id="here", host="h", pid=os.getpid(), version="1", process=process))
    with caplog.at_level(logging.WARNING, "windlass.upkeep"):
        await Reclaimer(store, lease=LEASE).round()
    assert [record.getMessage() for record in caplog.records] == ["worker gone: its process is gone, its leases are taken back"]
    assert {one.id: one.stopped_at is None for one in await store.workers.list()} == {"gone": False, "here": True}


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) as process:
        yield process
        process.kill()


async def test_a_process_is_gone_once_it_has_ended(sleeper: subprocess.Popen[bytes]) -> None:
    started = _start_of(sleeper.pid)
    assert not is_gone(Neighbour("w", sleeper.pid, started))
    assert is_gone(Neighbour("w", sleeper.pid, started + 1)), "another process has its number now"
    sleeper.kill()
    await until(lambda: is_gone(Neighbour("w", sleeper.pid, started)), "a killed process that nobody waits for")
    sleeper.wait()
    assert is_gone(Neighbour("w", sleeper.pid, started))


def _start_of(pid: int) -> int:
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:  # noqa: PTH123 - one line of the kernel's
        return int(file.read().rpartition(")")[2].split()[19])


async def claimed_by(store: Store, name: str) -> list[int]:
    await store.enqueue([NewJob(task="work")])
    return [job.id for job in await store.claim(await store.slices(), 1, new_lease(name, 600))]
