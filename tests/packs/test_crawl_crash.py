"""A worker that is killed in the middle of a crawl loses nothing, and nothing counts twice."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.crash.conftest import is_long
from tests.crash.processes import until
from tests.packs.crawl_site import TestSite
from tests.support.local_site import Seen, Write, serve
from tests.support.stores import fresh_url
from windlass.core.job import JobState, NewJob, RunReason
from windlass.core.payload import encode_object
from windlass.core.source import NewSource
from windlass.store import Store, open_store
from windlass.store.doctor import check

PAGES = 60
# Of the sixty, four are errors and two lead elsewhere; two more are not for the index.
CRAWLED, INDEXED = PAGES - 4 - 2, PAGES - 4 - 2 - 2
TURNS = 20 if is_long() else 1


class Workers:
    """Processes on one database."""

    def __init__(self, url: str, log: Path) -> None:
        self.url = url
        self._log = log
        self.running: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        ours = {
            "WINDLASS_DATABASE_URL": self.url,
            "WINDLASS_LEASE_SECONDS": "1",
            "WINDLASS_RECLAIM_INTERVAL": "100ms",
            "WINDLASS_POLL_INTERVAL": "100ms",
        }
        with self._log.open("ab") as log:
            command = [sys.executable, "-m", "windlass", "worker", "tests.packs.crawl_app:app", "--alone"]
            self.running.append(subprocess.Popen(command, env=os.environ | ours, stdout=log, stderr=log))

    def kill_first(self) -> None:
        self.running[0].send_signal(signal.SIGKILL)

    def close(self) -> None:
        for process in self.running:
            process.kill()
            process.wait()
        print(self._log.read_text()[-6000:])


@pytest.fixture(params=["sqlite-file", "postgres"])
def workers(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Workers]:
    with ExitStack() as stack:
        server = request.getfixturevalue("postgres_server") if request.param == "postgres" else None
        made = Workers(stack.enter_context(fresh_url(request.param, tmp_path, server)), tmp_path / "log")
        stack.callback(made.close)
        yield made


class Killing(TestSite):
    """Kills the worker when it asks for its so-manieth page, before or after the answer."""

    def __init__(self, workers: Workers, at: int, *, is_before: bool) -> None:
        super().__init__()
        self._workers, self._at, self._is_before = workers, at, is_before

    async def answer(self, seen: Seen, write: Write) -> None:
        if seen.target == "/":
            # It has the job; the other one is there in time to take it over.
            self._workers.start()
        is_time = sum(self.asked.values()) == self._at
        if is_time and self._is_before:
            self._workers.kill_first()
        await super().answer(seen, write)
        if is_time and not self._is_before:
            self._workers.kill_first()


@pytest.mark.parametrize("turn", range(TURNS))
async def test_a_killed_crawl_goes_on_from_its_cursor_and_counts_every_page_once(workers: Workers, turn: int) -> None:
    chance = random.Random(turn + os.getpid())
    site = Killing(workers, chance.randrange(2, PAGES), is_before=chance.random() < 0.5)
    store = open_store(workers.url, rng=random.Random(1))
    async with serve(site.answer) as served:
        await store.sources.upsert(NewSource("site", "x", served.url()))
        payload = encode_object({"source_id": "site", "max_pages": PAGES})
        [job] = await store.enqueue([NewJob(task="crawl", payload=payload, max_attempts=5)])
        workers.start()

        async def is_over() -> bool:
            return (await store.get(job.id)).state in {JobState.COMPLETED, JobState.FAILED}

        await until(is_over, "the crawl")
    await _check_counts(store, job.id, site)
    await store.aclose()


async def _check_counts(store: Store, job_id: int, site: TestSite) -> None:
    ended = await store.get(job_id)
    assert (ended.state, ended.progress_count) == (JobState.COMPLETED, CRAWLED), ended.last_error
    [last, killed] = await store.list_executions(job_id)
    assert killed.reason is RunReason.LEASE_EXPIRED
    assert (last.items_crawled, last.items_indexed) == (CRAWLED, INDEXED)
    assert len(await store.pages.list(source_id="site")) == INDEXED
    # Beside the page where /old leads, only what was under way when the worker died is asked for again.
    again = {target: count for target, count in site.pages.items() if count > 1}
    again["/p/1"] -= 1
    assert sum(count - 1 for count in again.values() if count > 1) <= 2, again
    assert await check(store) == []
