"""Many who read do not hold up the work: 200 viewers search while jobs go on being enqueued and run in the same process.

With `WINDLASS_TEST_LONG=1`, as `dev.py test --long` sets it, it measures with 150,000 jobs and prints what it found.
"""

from __future__ import annotations

import http.client
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from random import Random
from typing import Any

from tests.web.server_process import TOKEN, running
from windlass.core.job import NewJob
from windlass.store import open_store

IS_LONG = os.environ.get("WINDLASS_TEST_LONG") == "1"
JOBS = 150_000 if IS_LONG else 20_000
SAMPLES = 200 if IS_LONG else 40
VIEWERS = 200
APP = """
import os, time
from windlass import Windlass

app = Windlass()

@app.task
async def note(number: int) -> None:
    with open("done", "a") as done:
        done.write(f"{number} {time.monotonic()}\\n")
"""
SEARCHES = (
    "/api/v1/jobs?search=needle&limit=500",
    "/api/v1/jobs?search=nothing-like-this",
    "/api/v1/jobs?limit=500",
    "/api/v1/jobs?search=lead&sort_by=priority",
    "/",
    "/api/v1/dead-letters?limit=500",
)


async def fill(url: str) -> None:
    """Put jobs into the table that no worker here serves."""
    store = open_store(url, rng=Random(1))
    for start in range(0, JOBS, 1000):
        texts = (f'{{"city":"Berlin","text":"{"needle " if place % 50 == 0 else ""}{"x" * 200}"}}' for place in range(1000))
        await store.enqueue([NewJob(task=f"lead-{start % 7}", lane="pull", payload=text, subject=f"s{start}") for text in texts])
    await store.aclose()


def percentile(values: list[float], part: float) -> float:
    return statistics.quantiles(values, n=100, method="inclusive")[round(part * 100) - 1]


class Bench:
    """Enqueues over HTTP, and reads from a file when each job was done."""

    def __init__(self, port: int, folder: Path) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        self._done = folder / "done"
        self._number = 0

    def sample(self) -> float:
        """Measure one job from before its enqueue to the end of its handler."""
        self._number += 1
        body = json.dumps({"task": "note", "payload": {"number": self._number}})
        headers = {"authorization": f"Bearer {TOKEN}", "content-type": "application/json"}
        began = time.monotonic()
        self._connection.request("POST", "/api/v1/jobs", body, headers)
        answer = self._connection.getresponse()
        assert answer.status == 201, answer.read()
        answer.read()
        give_up = began + 60
        while time.monotonic() < give_up:
            for line in self._done.read_text(encoding="ascii").splitlines()[-3:] if self._done.exists() else ():
                number, _, at = line.partition(" ")
                if int(number) == self._number and at:
                    return float(at) - began
            time.sleep(0.002)
        raise AssertionError("the job was never done")

    def close(self) -> None:
        self._connection.close()

    def samples(self, count: int) -> list[float]:
        found = []
        for _ in range(count):
            found.append(self.sample())
            time.sleep(0.02)
        return found


@contextmanager
def viewers(port: int, found: dict[str, Any]) -> Iterator[None]:
    command = [sys.executable, str(Path(__file__).with_name("viewers.py")), str(port), TOKEN, str(VIEWERS), *SEARCHES]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            yield
        finally:
            out, _ = process.communicate(b"", timeout=30)
    found.update(json.loads(out))


async def test_two_hundred_viewers_do_not_hold_up_the_work(url: str, tmp_path: Path) -> None:
    await fill(url)
    (tmp_path / "bench_jobs.py").write_text(APP, encoding="utf-8")
    read: dict[str, Any] = {}
    with (
        running(tmp_path, "bench_jobs:app", "--log-level", "error", command="up", WINDLASS_DATABASE_URL=url) as server,
        closing(Bench(server.port, tmp_path)) as bench,
    ):
        bench.samples(20)
        idle = bench.samples(SAMPLES)
        with viewers(server.port, read):
            bench.samples(SAMPLES // 4)
            busy = bench.samples(SAMPLES)
        after = bench.samples(SAMPLES // 2)
    for name, values in (("idle", idle), ("busy", busy), ("after", after)):
        p50, p95 = percentile(values, 0.5), percentile(values, 0.95)
        print(f"{name:>6}: p50 {p50 * 1000:.1f} ms, p95 {p95 * 1000:.1f} ms, max {max(values) * 1000:.1f} ms")
    print(f" reads: {read}")
    assert read["statuses"].get("200", 0) > 0
    most = 3.0 if IS_LONG else 6.0
    assert percentile(busy, 0.95) <= most * max(percentile(idle, 0.95), 0.01)
