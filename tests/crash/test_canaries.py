"""A canary requeue with real workers, of which the one with the upkeep is killed in between."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from random import Random

import pytest

from tests.crash.processes import until
from tests.support.postgres_server import PostgresServer
from tests.support.stores import fresh_url
from windlass.core.canary import CanaryState
from windlass.core.job import JobState, NewJob
from windlass.core.letters import LetterFilter
from windlass.store import Store, open_store
from windlass.store.doctor import check

LETTERS = 100
CANARIES = 4


@pytest.fixture(params=["sqlite-file", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    server: PostgresServer | None = request.getfixturevalue("postgres_server") if request.param == "postgres" else None
    with fresh_url(request.param, tmp_path, server) as made:
        yield made


@pytest.fixture
async def store(url: str) -> AsyncIterator[Store]:
    opened = open_store(url, rng=Random(1))
    yield opened
    assert await check(opened) == []
    await opened.aclose()


class Workers:
    """Workers on one database, each with its upkeep; what they ran is in the ledger."""

    def __init__(self, url: str, folder: Path) -> None:
        self.ledger = folder / "ledger"
        self._url = url
        self._log = folder / "log"
        self.running: list[subprocess.Popen[bytes]] = []

    def start(self) -> subprocess.Popen[bytes]:
        ours = {"WINDLASS_DATABASE_URL": self._url, "WINDLASS_TEST_LEDGER": str(self.ledger), "WINDLASS_LEASE_SECONDS": "2"}
        ours |= {"WINDLASS_RECLAIM_INTERVAL": "200ms", "WINDLASS_VERSION": "v2"}
        command = [sys.executable, "-m", "windlass", "worker", "tests.crash.jobs_app:app", "--log-level", "warning"]
        with self._log.open("ab") as log:
            process = subprocess.Popen(command, env=os.environ | ours, stdout=log, stderr=log)
        self.running.append(process)
        return process

    def kill(self) -> None:
        """End all at once, without a word."""
        for process in self.running:
            process.send_signal(signal.SIGKILL)
            process.wait()
        self.running.clear()

    @property
    def log(self) -> str:
        return self._log.read_text()


@pytest.fixture
def workers(url: str, tmp_path: Path) -> Iterator[Workers]:
    made = Workers(url, tmp_path)
    yield made
    made.kill()


async def bury(store: Store, task: str) -> list[int]:
    made = await store.enqueue([NewJob(task=task, max_attempts=1) for _ in range(LETTERS)])
    await store.bury([one.id for one in made], "mailbox full")
    return [one.id for one in made]


async def test_a_cause_that_is_not_fixed_runs_only_the_canaries(store: Store, workers: Workers) -> None:
    jobs = await bury(store, "broken")
    workers.start()
    workers.start()
    canary = await store.canaries.start(LetterFilter(), size=CANARIES, by="ann")

    async def has_stopped() -> bool:
        return (await store.canaries.get(canary.id)).state is CanaryState.STOPPED

    await until(has_stopped, "the canary to stop")
    # A round of every chore later nothing else has run.
    await asyncio.sleep(6)
    ended = await store.canaries.get(canary.id)
    assert ended.requeued == CANARIES
    assert "failed again: RuntimeError: still broken" in (ended.reason or "")
    runs = [len(await store.list_executions(job)) for job in jobs]
    assert (sum(runs), sum(runs[:CANARIES])) == (CANARIES, CANARIES)
    assert f"canary {canary.id} stopped" in workers.log
    assert {(await store.list_executions(job))[0].version for job in jobs[:CANARIES]} == {"v2"}


async def test_a_fixed_cause_brings_back_all_though_every_upkeep_is_killed_in_between(store: Store, workers: Workers) -> None:
    jobs = await bury(store, "tick")
    workers.start()
    canary = await store.canaries.start(LetterFilter(), size=CANARIES, by="ann")

    async def canaries_ran() -> bool:
        return {job.state for job in await store.get_many(jobs[:CANARIES])} == {JobState.COMPLETED}

    await until(canaries_ran, "the canaries to succeed")
    workers.kill()
    assert (await store.canaries.get(canary.id)).state in {CanaryState.TRYING, CanaryState.REQUEUING, CanaryState.DONE}
    workers.start()
    workers.start()

    async def all_ran() -> bool:
        return {job.state for job in await store.get_many(jobs)} == {JobState.COMPLETED}

    await until(all_ran, "the rest to follow")

    async def is_done() -> bool:
        return (await store.canaries.get(canary.id)).state is CanaryState.DONE

    await until(is_done, "the canary to be done")
    done = await store.canaries.get(canary.id)
    assert (done.requeued, done.refused, done.succeeded) == (LETTERS, 0, CANARIES)
    assert (await store.letters.count_open()).letters == 0
