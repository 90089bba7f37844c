"""What a job costs in CPU time, against the least it can cost in the same run: no change may quietly double it.

The bounds are about twice what was measured when they were set. They are ratios of CPU time: other work on the machine makes that
longer too, through its caches and by turns, so ours and the least are measured side by side, and the best of a few rounds counts.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg
import pytest

from tests.cost.lean import cpu_of, postgres_cost, sqlite_cost
from tests.support.postgres_server import PostgresServer
from tests.support.stores import fresh_postgres, fresh_url
from windlass import Windlass

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="asks /proc what a process has used")

JOBS = 3000
BULK = 1000
ROUNDS = 5


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


def _best(measure: Callable[[], dict[str, float]], bounds: dict[str, float]) -> dict[str, float]:
    """Return the least of each ratio over the rounds; no more are made than are needed."""
    best = dict.fromkeys(bounds, float("inf"))
    for _ in range(ROUNDS):
        best = {name: min(best[name], ratio) for name, ratio in measure().items()}
        if all(best[name] < bound for name, bound in bounds.items()):
            break
    return best


def test_a_job_on_sqlite_costs_a_small_multiple_of_the_least_it_can(tmp_path: Path) -> None:
    def measure() -> dict[str, float]:
        with TemporaryDirectory(dir=tmp_path) as folder, fresh_url("sqlite-file", Path(folder), None) as url:
            # Of everything: the event loop is in both, the threads of the store too.
            ours, lean_loop = asyncio.run(_pass(url, time.process_time)), _lean_loop()
            lean_enqueue, lean_drain = sqlite_cost(Path(folder), JOBS)
        return {"enqueue": ours.enqueue / lean_enqueue, "drain": ours.drain / lean_drain, "loop": ours.loop / lean_loop}

    bounds = {"enqueue": 10.0, "drain": 30.0, "loop": 14.0}
    best = _best(measure, bounds)
    assert {name: ratio for name, ratio in best.items() if ratio >= bounds[name]} == {}


def test_a_job_on_postgres_costs_the_server_a_small_multiple_of_the_least_it_can(postgres_server: PostgresServer) -> None:
    def measure() -> dict[str, float]:
        with fresh_postgres(postgres_server) as dsn, psycopg.connect(dsn, autocommit=True) as asks:

            def spent() -> float:
                pids = asks.execute(
                    "select pid from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid() "
                    "and backend_type = 'client backend'"
                )
                return sum(cpu_of(pid) for (pid,) in pids.fetchall())

            ours, lean_loop = asyncio.run(_pass(dsn, spent)), _lean_loop()
            lean_enqueue, lean_drain = postgres_cost(dsn, JOBS)
        return {"enqueue": ours.enqueue / lean_enqueue, "drain": ours.drain / lean_drain, "loop": ours.loop / lean_loop}

    bounds = {"enqueue": 6.0, "drain": 5.0, "loop": 20.0}
    best = _best(measure, bounds)
    assert {name: ratio for name, ratio in best.items() if ratio >= bounds[name]} == {}
