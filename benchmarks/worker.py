"""A whole worker against our own claim and finish sent raw, in one run: only the ratios mean anything."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.store import Bench, Result, fresh, interleaved, print_results, say, say_result
from tests.support.postgres_server import running_postgres
from windlass.clock import DatabaseClock
from windlass.core.job import NewJob
from windlass.core.pool import parse_pools
from windlass.core.task import Registry, TaskSpec
from windlass.store import Store, open_blocking_store
from windlass.worker.program import Program, WorkerOptions
from windlass.worker.worker import Worker


async def worker_on(bench: Bench, function: Callable[..., Any], slots: int) -> tuple[Worker, Store]:
    """Make a worker for one task called work."""
    url = f"sqlite:///{bench.target}" if bench.is_sqlite else bench.target
    registry = Registry()
    registry.add(TaskSpec(name="work", function=function, arguments=json.loads))
    heart = open_blocking_store(url, rng=Random(2))
    clock = DatabaseClock(await bench.store.clock())
    options = WorkerOptions(pools=parse_pools(f"*={slots}"))
    program = Program(registry=registry)
    return Worker(bench.store, heart, program, clock=clock, rng=Random(3), name="bench", options=options), heart


async def drain(bench: Bench, jobs: int, slots: int = 5) -> float:
    """Enqueue no-op jobs, then let a worker run them all; returns jobs per second."""
    left = jobs

    async def on_loop(**_: Any) -> None:
        nonlocal left
        left -= 1
        if not left:
            worker.stop()

    await bench.enqueue_raw(jobs, 1000)
    worker, heart = await worker_on(bench, on_loop, slots)
    started = time.perf_counter()
    await worker.run()
    spent = time.perf_counter() - started
    await heart.aclose()
    return jobs / spent


async def pick_up(bench: Bench, rounds: int) -> tuple[float, float]:
    """Enqueue one job at a time on an idle worker in this process; returns p50 and p99 from the commit, in milliseconds."""
    started = asyncio.Event()
    at = 0.0

    async def function(**_: Any) -> None:
        nonlocal at
        at = time.perf_counter()
        started.set()

    worker, heart = await worker_on(bench, function, 2)
    spent = []
    async with bench.store.wakeups as wakeups:
        wakeups.subscribe(worker.wake)
        running = asyncio.create_task(worker.run())
        await asyncio.sleep(0.2)
        for _ in range(rounds):
            started.clear()
            await bench.store.enqueue([NewJob(task="work")])
            committed = time.perf_counter()
            await started.wait()
            spent.append((at - committed) * 1000)
            await asyncio.sleep(0.005)
        worker.stop()
        await running
    await heart.aclose()
    return statistics.median(spent), statistics.quantiles(spent, n=100)[98]


def import_ratio() -> Result:
    """Compare the import of windlass with that of asyncio, each in fresh interpreters."""

    def seconds(code: str) -> float:
        best = []
        for _ in range(7):
            before = time.perf_counter()
            subprocess.run([sys.executable, "-c", code], check=True, env=os.environ)
            best.append(time.perf_counter() - before)
        return statistics.median(best)

    empty = seconds("pass")
    base, ours = seconds("import asyncio") - empty, seconds("import windlass; windlass.Windlass") - empty
    return Result("import (s)", base, ours, ours / base, "≤ 6")


async def measure(options: argparse.Namespace) -> list[Result]:
    """Run every measurement."""
    results: list[Result] = []

    def note(result: Result) -> None:
        results.append(result)
        say_result(result)

    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        server = stack.enter_context(running_postgres()) if "postgres" in options.databases else None
        for kind in options.databases:
            bench = stack.enter_context(fresh(kind, stack, folder, server))

            # First, on an idle database: what a long drain leaves behind for the vacuum is not what is asked here.
            say(f"{kind}: pick-up")
            p50, p99 = await pick_up(bench, options.picks)
            note(Result(f"{bench.name}: idle pick-up after the commit, p50, p99 (ms)", p50, p99, p99 / p50, "≤ 3, ≤ 15"))

            async def raw(bench: Bench = bench) -> float:
                await bench.enqueue_raw(options.jobs, 1000)
                return await bench.drain_raw(200)

            say(f"{kind}: drain")
            base, ours = await interleaved(options.rounds, raw, partial(drain, bench, options.jobs))
            note(Result(f"{bench.name}: drain of no-op jobs", base, ours, ours / base, "≥ 0.65"))
            await bench.store.aclose()
        note(import_ratio())
    return results


def main() -> None:
    """Measure and print a small table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=20_000)
    parser.add_argument("--picks", type=int, default=300)
    parser.add_argument("--databases", nargs="+", default=["sqlite", "postgres"], choices=["sqlite", "postgres"])
    options = parser.parse_args()
    results = asyncio.run(measure(options))
    print_results(results, f"medians of {options.rounds} interleaved rounds of {options.jobs} jobs")


if __name__ == "__main__":
    main()
