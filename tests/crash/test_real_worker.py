"""`windlass worker` as people run it: signals, crashes and outages, in real processes."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest

from tests.crash.conftest import is_long
from tests.crash.processes import until
from tests.support.postgres_server import PostgresServer
from tests.support.stores import fresh_url
from windlass.core.breaker import BreakerState
from windlass.core.job import JobState, NewJob, RunReason, RunStatus
from windlass.core.payload import encode_object
from windlass.store import Store, open_store
from windlass.store.doctor import check

LEASE_S = 2
TURNS = 100 if is_long() else 6


class Site:
    """Workers on one database, and the ledger their handlers write."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url = url
        self.ledger = folder / "ledger"
        self._log = folder / "workers.log"
        self._running: list[subprocess.Popen[bytes]] = []

    def start(self, *options: str, lease: int = LEASE_S) -> subprocess.Popen[bytes]:
        ours = {
            "WINDLASS_DATABASE_URL": self.url,
            "WINDLASS_LEASE_SECONDS": str(lease),
            "WINDLASS_RECLAIM_INTERVAL": "200ms",
            "WINDLASS_POLL_INTERVAL": "200ms",
            "WINDLASS_TEST_LEDGER": str(self.ledger),
        }
        with self._log.open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "windlass", "worker", "tests.crash.jobs_app:app", "--log-level", "warning", *options],
                env=os.environ | ours,
                stdout=log,
                stderr=log,
            )
        self._running.append(process)
        return process

    def lines(self, word: str) -> list[tuple[int, int]]:
        """Give (job, process) of every line with this word."""
        text = self.ledger.read_text() if self.ledger.exists() else ""
        # What comes after the last line break is being written.
        parts = (line.split() for line in text[: text.rfind("\n") + 1].splitlines())
        return [(int(job), int(pid)) for said, job, pid in parts if said == word]

    def count(self, word: str) -> int:
        """Count the lines with this word."""
        text = self.ledger.read_text() if self.ledger.exists() else ""
        return text.count(f"\n{word} ") + text.startswith(f"{word} ")

    def mark(self, word: str) -> None:
        """Tell the handlers something."""
        self.ledger.with_name(f"{self.ledger.name}.{word}").touch()

    def log(self) -> str:
        """Read what the workers have logged."""
        return self._log.read_text()

    def has_begun(self, before: int) -> bool:
        return len(self.lines("start")) > before

    async def end(self, process: subprocess.Popen[bytes], within: float = 40) -> int:
        return await asyncio.to_thread(process.wait, within)

    def close(self) -> None:
        for process in self._running:
            if process.poll() is None:
                process.kill()
                process.wait()
        if self._log.exists():
            # Shown by pytest when the test fails.
            print(self._log.read_text()[-6000:])


@pytest.fixture
def site(url: str, store: Store, tmp_path: Path) -> Iterator[Site]:
    del store
    made = Site(url, tmp_path)
    yield made
    made.close()


async def enqueue(store: Store, task: str, count: int = 1, **options: object) -> list[int]:
    payload = encode_object(options.pop("payload", {}))
    enqueued = await store.enqueue([NewJob(task=task, payload=payload, **options) for _ in range(count)])  # type: ignore[arg-type]
    return [one.id for one in enqueued]


async def all_in(store: Store, ids: list[int], state: JobState, *, within: float = 60) -> None:
    async def over() -> bool:
        return all([(await store.get(job_id)).state is state for job_id in ids])

    await until(over, f"{len(ids)} jobs to be {state}", within=within)


async def test_sigterm_at_any_moment_loses_nothing_and_charges_nobody(site: Site, store: Store) -> None:
    rng = random.Random(5)
    ids: list[int] = []
    for _ in range(TURNS):
        ids += await enqueue(store, "work", 40)
        ids += await enqueue(store, "work", 10, payload={"seconds": 0.05})
        before = len(site.lines("start"))
        process = site.start("--alone", "--pools", "*=4")
        await until(partial(site.has_begun, before), "work to begin")
        await asyncio.sleep(rng.uniform(0, 0.15))
        process.send_signal(signal.SIGTERM)
        assert await site.end(process) == 0
    # One more, so that the last worker has something to do and is known to be up before it is told to stop.
    ids += await enqueue(store, "work", 1)
    process = site.start("--alone", "--pools", "*=4")
    await all_in(store, ids, JobState.COMPLETED)
    process.send_signal(signal.SIGTERM)
    assert await site.end(process) == 0
    assert Counter(job for job, _ in site.lines("end")) == dict.fromkeys(ids, 1)
    jobs = [await store.get(job_id) for job_id in ids]
    odd = {job.id: await store.list_executions(job.id) for job in jobs if (job.attempt, job.executions, job.crashes) != (1, 1, 0)}
    assert odd == {}


async def test_a_worker_stopped_for_two_leases_is_refused_and_its_handler_told(site: Site, store: Store) -> None:
    [job_id] = await enqueue(store, "patient")
    sleeper = site.start("--alone")
    await until(lambda: len(site.lines("start")) == 1, "the first run to start")
    # One heartbeat, which reports the start.
    await asyncio.sleep(LEASE_S / 3)
    sleeper.send_signal(signal.SIGSTOP)
    other = site.start("--alone")
    await until(lambda: len(site.lines("start")) == 2, "the second run to start")
    await asyncio.sleep(0.2)
    site.ledger.with_name(f"{site.ledger.name}.release").touch()
    await all_in(store, [job_id], JobState.COMPLETED)
    site.ledger.with_name(f"{site.ledger.name}.release").unlink()
    sleeper.send_signal(signal.SIGCONT)
    await until(lambda: bool(site.lines("told")) or len(site.lines("end")) == 2, "the late handler to hear of it")
    for process in (sleeper, other):
        process.send_signal(signal.SIGTERM)
        assert await site.end(process) == 0
    runs = await store.list_executions(job_id)
    assert [(run.status, run.reason) for run in runs] == [
        (RunStatus.COMPLETED, None),
        (RunStatus.FAILED, RunReason.LEASE_EXPIRED),
    ]


@pytest.mark.parametrize("way", ["segfault", "exit"])
async def test_a_poison_job_ends_as_a_dead_letter_and_takes_no_neighbour_with_it(site: Site, store: Store, way: str) -> None:
    quiet = await enqueue(store, "work", 30)
    [doomed] = await enqueue(store, "poison", payload={"way": way}, max_attempts=3, priority=10)
    later = await enqueue(store, "work", 30)
    boss = site.start("--pools", "*=2")
    await all_in(store, [doomed], JobState.FAILED, within=90)
    await all_in(store, [*quiet, *later], JobState.COMPLETED)
    boss.send_signal(signal.SIGTERM)
    assert await site.end(boss) == 0
    assert len(site.lines("start")) >= len(quiet) + len(later) + 3
    # The first may not have been reported as started yet when the process died, and is not charged then.
    assert [job for job, _ in site.lines("start")].count(doomed) in {3, 4}
    runs = await store.list_executions(doomed)
    # The first death takes the process along; after it the job runs in a child of its own.
    assert {run.reason for run in runs[:2]} == {RunReason.WORKER_CRASHED}
    assert runs[-1].reason in {RunReason.LEASE_EXPIRED, RunReason.WORKER_CRASHED}
    assert len(await store.list_dead_letters(doomed)) == 1
    neighbours = [await store.get(job_id) for job_id in (*quiet, *later)]
    # One that was running beside it may have been charged a run that ended with the process; none has died of it.
    assert max(job.attempt for job in neighbours) <= 2


async def test_half_open_lets_one_probe_through_over_four_processes(site: Site, store: Store) -> None:
    await store.breakers.force_open("service", timedelta(seconds=1))
    ids = await enqueue(store, "guarded", 12, max_attempts=20)
    boss = site.start("--processes", "4", "--pools", "*=4")
    await until(lambda: len(site.lines("start")) >= 1, "the first probe")
    await asyncio.sleep(0.25)
    # While the probe runs nobody else may: it fails after 0.3 s.
    assert len(site.lines("start")) == 1
    site.ledger.with_name(f"{site.ledger.name}.well").touch()
    await store.breakers.reset("service")
    await all_in(store, ids, JobState.COMPLETED)
    boss.send_signal(signal.SIGTERM)
    assert await site.end(boss) == 0
    found = await store.breakers.get("service")
    assert found is not None
    assert found.state is BreakerState.CLOSED


async def test_workers_end_when_their_supervisor_is_killed(site: Site, store: Store) -> None:
    ids = await enqueue(store, "work", 5)
    boss = site.start("--processes", "2")
    await all_in(store, ids, JobState.COMPLETED)
    workers = {pid for _, pid in site.lines("start")}
    boss.kill()
    await site.end(boss)
    await until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in workers), "the workers to end", within=20)


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[Store]:
    """Open a store for the test itself."""
    store = open_store(url, rng=random.Random(1))
    try:
        yield store
    finally:
        await store.aclose()


@pytest.fixture
def lent_site(own_server: PostgresServer, tmp_path: Path) -> Iterator[Site]:
    """Give workers on a server that the test may stop."""
    with fresh_url("postgres", tmp_path, own_server) as url:
        made = Site(url, tmp_path)
        yield made
        made.close()


async def test_postgres_away_for_three_leases_under_load_loses_and_repeats_nothing(
    lent_site: Site, own_server: PostgresServer
) -> None:
    async with opened(lent_site.url) as store:
        ids = await enqueue(store, "work", 400, payload={"seconds": 0.1})
    boss = lent_site.start("--pools", "*=8", lease=1)
    await until(lambda: len(lent_site.lines("end")) >= 40, "work to be under way")
    await asyncio.to_thread(own_server.stop, "fast")
    await asyncio.sleep(3.3)
    at_return = len(lent_site.lines("start"))
    await asyncio.to_thread(own_server.start)
    await until(lambda: len(lent_site.lines("start")) > at_return, "work to resume by itself", within=15)
    async with opened(lent_site.url) as store:
        await all_in(store, ids, JobState.COMPLETED)
        boss.send_signal(signal.SIGTERM)
        assert await lent_site.end(boss) == 0
        assert Counter(job for job, _ in lent_site.lines("start")) == dict.fromkeys(ids, 1)
        assert {(await store.get(job_id)).executions for job_id in ids} == {1}
        assert await check(store) == []
