"""Real `windlass worker` processes: isolations against each other, two processes against one, memory."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psycopg

# In place of this folder, whose modules have names of others.
sys.path.pop(0)
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.process_costs import children, peak_mib
from benchmarks.store import Bench, Result, fresh, interleaved, print_results, say, say_result
from tests.support.postgres_server import running_postgres
from windlass.core.job import NewJob
from windlass.store.sqlite_library import sqlite_driver as driver

ROOT = Path(__file__).resolve().parent.parent
_PATIENCE_S = 120.0
# The first jobs wait for processes that are still starting.
_WARM = 0.8


class Fleet:
    """Workers of one database, started for each drain and stopped after it."""

    def __init__(self, bench: Bench) -> None:
        """Work on the bench's database."""
        self._bench = bench
        self.peak_mib = 0.0

    async def drain(self, task: str, jobs: int, processes: int = 1) -> float:
        """Let fresh workers run no-op jobs; returns jobs per second from the first start to the last end, once warm."""
        before = await self._ended()
        for start in range(0, jobs, 500):
            await self._bench.store.enqueue([NewJob(task=task)] * min(500, jobs - start))
        command = [
            "worker",
            "benchmarks.fleet_app:app",
            "--pools",
            "*=5",
            "--processes",
            str(processes),
            "--log-level",
            "warning",
        ]
        settings = {"WINDLASS_DATABASE_URL": self._url, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
        supervisor = await asyncio.create_subprocess_exec(sys.executable, "-m", "windlass", *command, env=os.environ | settings)
        try:
            await self._wait(before + jobs)
            self.peak_mib = max(self.peak_mib, *map(peak_mib, children(supervisor.pid)))
        finally:
            supervisor.send_signal(signal.SIGTERM)
            await supervisor.wait()
        warm = int(jobs * _WARM)
        return warm / self._span_s(warm)

    def _span_s(self, runs: int) -> float:
        """Tell how long the newest runs took, from the first start to the last end."""
        newest = f"(select started_at, finished_at from windlass_executions order by job_id desc limit {runs}) as newest"
        if self._bench.is_sqlite:
            with closing(driver.connect(self._bench.target)) as file:
                [[spent]] = file.execute(f"select (max(finished_at) - min(started_at)) / 1e6 from {newest}")
        else:
            with psycopg.connect(self._bench.target) as server:
                query = f"select extract(epoch from max(finished_at) - min(started_at)) from {newest}"
                [[spent]] = server.execute(query).fetchall()
        return float(spent)

    @property
    def _url(self) -> str:
        return f"sqlite:///{self._bench.target}" if self._bench.is_sqlite else self._bench.target

    async def _ended(self) -> int:
        return sum(count.jobs for count in await self._bench.store.count_jobs() if count.state == "completed")

    async def _wait(self, ended: int) -> None:
        late = time.monotonic() + _PATIENCE_S
        while await self._ended() < ended:
            if time.monotonic() > late:
                raise SystemExit("the fleet does not get its jobs done")
            await asyncio.sleep(0.2)


async def measure(options: argparse.Namespace) -> list[Result]:
    """Run every measurement."""
    results: list[Result] = []

    def note(*result: Any) -> None:
        results.append(Result(*result))
        say_result(results[-1])

    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        server = stack.enter_context(running_postgres()) if "postgres" in options.databases else None
        for kind in options.databases:
            bench = stack.enter_context(fresh(kind, stack, folder, server))
            fleet = Fleet(bench)
            turns: list[Callable[[], Awaitable[float]]] = [
                partial(fleet.drain, "async", options.jobs),
                partial(fleet.drain, "thread", options.jobs),
                partial(fleet.drain, "process", options.jobs // 10),
            ]
            if not bench.is_sqlite:
                turns.append(partial(fleet.drain, "async", options.jobs, 2))
            say(f"{kind}: isolations" + ("" if bench.is_sqlite else ", two processes"))
            alone, thread, process, *two = await interleaved(options.rounds, *turns)
            note(f"{bench.name}: cost per job, thread / async", alone, thread, alone / thread, "≤ 2.5")
            note(f"{bench.name}: cost per job, process / async", alone, process, alone / process, "≤ 15")
            for rate in two:
                note(f"{bench.name}: drain, two processes / one", alone, rate, rate / alone, "≥ 1.3")
            note(f"{bench.name}: most memory of a worker (MiB), of 80", 80.0, fleet.peak_mib, fleet.peak_mib / 80, "< 1")
            await bench.store.aclose()
    return results


def main() -> None:
    """Measure and print a small table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--databases", nargs="+", default=["sqlite", "postgres"], choices=["sqlite", "postgres"])
    options = parser.parse_args()
    print_results(asyncio.run(measure(options)), f"medians of {options.rounds} interleaved rounds of {options.jobs} jobs")


if __name__ == "__main__":
    main()
