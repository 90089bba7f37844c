"""What a hundred pull workers cost that wait on one server, and how soon each gets a job that another process enqueues."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import Random
from statistics import median, quantiles
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.support.postgres_server import running_postgres
from tests.support.stores import fresh_postgres, migrate_sqlite
from windlass.core.job import NewJob
from windlass.core.payload import encode_object
from windlass.store import Store, open_store

SECRET = "benchmark-worker-secret"
WORKERS = 100
GOAL_SHARE = 0.10
GOAL_MS = 50.0
_TICKS = os.sysconf("SC_CLK_TCK")


class Poller(asyncio.Protocol):
    """A pull worker that asks again as soon as it is answered, and notes how old the job was."""

    def __init__(self, number: int, port: int, ages_ms: list[float]) -> None:
        self._request = (
            f"GET /api/pull_job?wait=30 HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nx-worker-id: w{number}\r\n"
            f"x-internal-secret: {SECRET}\r\n\r\n"
        ).encode()
        self._ages_ms = ages_ms
        self._seen = b""
        self._transport: asyncio.WriteTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.WriteTransport)
        self._transport = transport
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        now = time.monotonic_ns()
        self._seen += data
        head, mark, body = self._seen.partition(b"\r\n\r\n")
        if not mark or len(body) < int(head.lower().split(b"content-length:", 1)[1].split(b"\r\n", 1)[0]):
            return
        assert head.startswith(b"HTTP/1.1 200"), self._seen[:500]
        self._seen = b""
        job = json.loads(body)["job"]
        if job is not None:
            self._ages_ms.append((now - job["payload"]["at"]) / 1e6)
        assert self._transport is not None
        self._transport.write(self._request)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()


@contextmanager
def serving(url: str) -> Iterator[tuple[int, int]]:
    """Run `windlass serve` in a process of its own, and give its port and its number."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    env = os.environ | {"WINDLASS_DATABASE_URL": url, "WINDLASS_WORKER_SECRET": SECRET}
    command = [sys.executable, "-m", "windlass", "serve", "--host", "127.0.0.1", "--port", str(port)]
    with TemporaryDirectory() as folder, subprocess.Popen(command, env=env, cwd=folder, stdout=subprocess.DEVNULL) as process:
        try:
            _wait_for(port)
            yield port, process.pid
        finally:
            process.terminate()
            process.wait(30)


def _wait_for(port: int) -> None:
    for _ in range(600):
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise SystemExit("the server did not come up")


def cpu_seconds(pid: int) -> float:
    """Read what a process has used, all its threads together."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


async def share(pid: int, seconds: float) -> float:
    """Measure which part of a core a process uses."""
    before, began = cpu_seconds(pid), time.monotonic()
    await asyncio.sleep(seconds)
    return (cpu_seconds(pid) - before) / (time.monotonic() - began)


def a_job() -> NewJob:
    return NewJob(task="leads", lane="pull", payload=encode_object({"at": time.monotonic_ns()}))


async def singles(store: Store, ages_ms: list[float], enqueues_ms: list[float], jobs: int) -> list[float]:
    """Enqueue one job after the other; each age is counted from before its enqueue."""
    ages_ms.clear()
    for number in range(jobs):
        began = time.monotonic()
        await store.enqueue([a_job()])
        enqueues_ms.append((time.monotonic() - began) * 1000)
        await _until(ages_ms, number + 1)
        await asyncio.sleep(0.02)
    return list(ages_ms)


async def burst(store: Store, ages_ms: list[float]) -> list[float]:
    """Enqueue a job for everybody at once."""
    ages_ms.clear()
    await store.enqueue([a_job() for _ in range(WORKERS)])
    await _until(ages_ms, WORKERS)
    return list(ages_ms)


async def _until(ages_ms: list[float], many: int) -> None:
    async with asyncio.timeout(30):
        while len(ages_ms) < many:  # noqa: ASYNC110 - the pollers only count
            await asyncio.sleep(0.001)


async def measure(name: str, url: str, seconds: float, jobs: int) -> bool:
    """Measure one database; says whether the goals were reached."""
    ages_ms: list[float] = []
    enqueues_ms: list[float] = []
    store = open_store(url, rng=Random(1))
    loop = asyncio.get_running_loop()
    with serving(url) as (port, pid):
        await asyncio.sleep(2)
        alone = await share(pid, seconds)
        pollers = [Poller(number, port, ages_ms) for number in range(WORKERS)]
        for poller in pollers:
            await loop.create_connection(lambda poller=poller: poller, "127.0.0.1", port)  # type: ignore[misc]
        await asyncio.sleep(1)
        idle = await share(pid, seconds)
        one_by_one = await singles(store, ages_ms, enqueues_ms, jobs)
        at_once = await burst(store, ages_ms)
        for poller in pollers:
            poller.close()
    await store.aclose()
    p50, p99 = median(one_by_one), quantiles(one_by_one, n=100)[98]
    print(f"{name}: idle {alone:.1%} of a core, with {WORKERS} who wait {idle:.1%} (goal {GOAL_SHARE:.0%})")
    print(f"{name}: enqueue to answer p50 {p50:.1f} ms, p99 {p99:.1f} ms (goal {GOAL_MS:.0f} ms)")
    print(f"{name}: of which the enqueue itself p50 {median(enqueues_ms):.1f} ms, p99 {quantiles(enqueues_ms, n=100)[98]:.1f} ms")
    print(f"{name}: {WORKERS} at once: p50 {median(at_once):.1f} ms, longest {max(at_once):.1f} ms", flush=True)
    return idle < GOAL_SHARE and p99 < GOAL_MS


def main() -> None:
    """Measure both databases."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--jobs", type=int, default=300)
    parser.add_argument("--database", choices=["sqlite", "postgres"])
    options = parser.parse_args()
    reached = True
    with ExitStack() as stack:
        if options.database != "postgres":
            path = Path(stack.enter_context(TemporaryDirectory())) / "bench.db"
            migrate_sqlite(path)
            reached &= asyncio.run(measure("sqlite", f"sqlite:///{path}", options.seconds, options.jobs))
        if options.database != "sqlite":
            dsn = stack.enter_context(fresh_postgres(stack.enter_context(running_postgres())))
            reached &= asyncio.run(measure("postgres", dsn, options.seconds, options.jobs))
    sys.exit(not reached)


if __name__ == "__main__":
    main()
