"""What a job costs in CPU time, against the least it can cost in the same run: no change may quietly double it.

The bounds are about twice what was measured when they were set; they are ratios of CPU time, which other work on the machine
hardly changes.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from tests.cost.lean import cpu_of, postgres_cost, sqlite_cost
from tests.support.postgres_server import PostgresServer
from tests.support.stores import fresh_postgres, fresh_url
from windlass import Windlass

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="asks /proc what a process has used")

JOBS = 6000
BULK = 1000


class Measured:
    """CPU seconds of one pass over all jobs."""

    def __init__(self, enqueue: float, drain: float, loop: float) -> None:
        self.enqueue = enqueue
        self.drain = drain
        self.loop = loop


async def _pass(url: str, spent: Callable[[], float]) -> Measured:
    """Enqueue and run no-op jobs; `spent` reads the CPU time of what is asked about, `loop` is that of the event loop."""
    app = Windlass(url, name="cost", pools="*=5")
    left = JOBS
    done = asyncio.Event()

    @app.task
    async def work(text: str) -> None:  # noqa: ARG001 - an argument to be read
        nonlocal left
        left -= 1
        if not left:
            done.set()

    async with app:
        await work.enqueue_many([])
        store = await app.store()
        await store.slices()
        began = spent()
        for _ in range(0, JOBS, BULK):
            await work.enqueue_many([{"text": "x" * 80}] * BULK)
        enqueued, loop_began = spent(), time.thread_time()
        async with app.working():
            async with asyncio.timeout(120):
                await done.wait()
            loop_ended = time.thread_time()
        return Measured(enqueued - began, spent() - enqueued, loop_ended - loop_began)


def _lean_loop() -> float:
    """Return the CPU time of an asyncio task for each job, which is the least that a run of its own takes."""

    async def nothing() -> None: ...

    async def all_of_them() -> float:
        began = time.thread_time()
        for _ in range(0, JOBS, 100):
            await asyncio.gather(*(asyncio.create_task(nothing()) for _ in range(100)))
        return time.thread_time() - began

    return asyncio.run(all_of_them())


def test_a_job_on_sqlite_costs_a_small_multiple_of_the_least_it_can(tmp_path: Path) -> None:
    with fresh_url("sqlite-file", tmp_path, None) as url:
        ours = asyncio.run(_pass(url, time.process_time))
    lean_enqueue, lean_drain = sqlite_cost(tmp_path, JOBS)
    # Of everything: the event loop is in both, the threads of the store too.
    assert ours.enqueue < 10 * lean_enqueue
    assert ours.drain < 30 * lean_drain
    assert ours.loop < 14 * _lean_loop()


def test_a_job_on_postgres_costs_the_server_a_small_multiple_of_the_least_it_can(postgres_server: PostgresServer) -> None:
    with fresh_postgres(postgres_server) as dsn, psycopg.connect(dsn, autocommit=True) as asks:

        def spent() -> float:
            pids = asks.execute(
                "select pid from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid() "
                "and backend_type = 'client backend'"
            )
            return sum(cpu_of(pid) for (pid,) in pids.fetchall())

        ours = asyncio.run(_pass(dsn, spent))
        lean_enqueue, lean_drain = postgres_cost(dsn, JOBS)
    assert ours.enqueue < 6 * lean_enqueue
    assert ours.drain < 5 * lean_drain
    assert ours.loop < 20 * _lean_loop()
