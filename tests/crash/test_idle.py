"""What a process costs while nothing happens: how often its threads wake."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.crash.processes import PATIENCE_S, until
from windlass.core.job import JobState, NewJob
from windlass.store import Store

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
MOST_WAKES = 20
"""How often all threads wake in a second; the looks of one that does not rest are 30 and more."""
WINDOW_S = 5
JOBS = """
import time

from windlass import Windlass

app = Windlass()


@app.task
async def block() -> None:
    time.sleep(2)
"""


@contextmanager
def running(folder: Path, url: str, *command: str) -> Iterator[subprocess.Popen[bytes]]:
    (folder / "jobs.py").write_text(JOBS, encoding="utf-8")
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "windlass", *command],
            cwd=folder,
            env=os.environ | {"WINDLASS_DATABASE_URL": url},
            stdout=log,
            stderr=log,
        )
    try:
        yield process
    finally:
        process.terminate()
        process.wait(60)


def of_threads(pid: int, file: str) -> list[str]:
    """Read a file of each thread; one that has just ended has none."""
    found = []
    for thread in Path(f"/proc/{pid}/task").iterdir():
        with suppress(OSError):
            found.append((thread / file).read_text())
    return found


def wakes(pid: int) -> int:
    """Count how often the threads of a process and of its children have gone to sleep."""
    lines = (line for status in of_threads(pid, "status") for line in status.splitlines())
    own = sum(int(line.split()[1]) for line in lines if line.startswith("voluntary_ctxt_switches"))
    return own + sum(wakes(int(child)) for children in of_threads(pid, "children") for child in children.split())


async def come_to_rest(pid: int) -> None:
    """Wait until a process has been quiet for a while; chores come now and then, and a start takes its time."""
    late, seen = time.monotonic() + PATIENCE_S, []
    while time.monotonic() < late:
        before = wakes(pid)
        await asyncio.sleep(WINDOW_S)
        seen.append((wakes(pid) - before) / WINDOW_S)
        if seen[-1] < MOST_WAKES:
            return
    pytest.fail(f"it never rests; wakes per second: {seen}")


@pytest.mark.parametrize("command", [("worker",), ("up", "--port", "0")], ids=["worker", "up"])
async def test_an_idle_process_rests_and_wakes_for_a_job_and_for_one_that_blocks_it(
    url: str, store: Store, tmp_path: Path, command: tuple[str, ...]
) -> None:
    async def has_worker() -> bool:
        return bool(await store.workers.list())

    with running(tmp_path, url, *command, "jobs:app") as process:
        await until(has_worker, "a worker to register")
        await come_to_rest(process.pid)
        [job] = await store.enqueue([NewJob(task="block")])

        async def is_over() -> bool:
            return (await store.get(job.id)).state is JobState.COMPLETED

        await until(is_over, "the job to end")
        await until(lambda: "the event loop has been blocked" in (tmp_path / "log").read_text(), "the block to be noticed")
