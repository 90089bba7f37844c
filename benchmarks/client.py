"""Measures single enqueues by one, ten and a hundred callers at once: only the ratios mean anything."""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.support.postgres_server import running_postgres
from tests.support.stores import fresh_postgres
from windlass import Windlass
from windlass.client.task import Task

CALLERS = (1, 10, 100)
GOALS = {10: 4.0, 100: 10.0}
ROUNDS = 3
SECONDS = 0.7

Measure = Callable[[Task[[int], None], int], Awaitable[float]]


async def from_loop(note: Task[[int], None], callers: int) -> float:
    """Count jobs per second by coroutines."""
    stop, done = time.monotonic() + SECONDS, 0

    async def call() -> None:
        nonlocal done
        while time.monotonic() < stop:
            await note.enqueue(done)
            done += 1

    started = time.monotonic()
    await asyncio.gather(*(call() for _ in range(callers)))
    return done / (time.monotonic() - started)


async def from_threads(note: Task[[int], None], callers: int) -> float:
    """Count jobs per second by threads."""
    stop = time.monotonic() + SECONDS

    def call() -> int:
        done = 0
        while time.monotonic() < stop:
            note.enqueue_sync(done)
            done += 1
        return done

    started = time.monotonic()
    loop = asyncio.get_running_loop()
    with ThreadPoolExecutor(callers) as pool:
        done = await asyncio.gather(*(loop.run_in_executor(pool, call) for _ in range(callers)))
    return sum(done) / (time.monotonic() - started)


async def compare(name: str, url: str) -> None:
    """Print the rates of one database, rounds interleaved."""
    async with Windlass(url) as app:

        @app.task
        def note(number: int) -> None: ...

        measures: dict[str, Measure] = {"loop": from_loop, "threads": from_threads}
        for kind, measure in measures.items():
            await measure(note, 10)
            rates: dict[int, list[float]] = {callers: [] for callers in CALLERS}
            for _ in range(ROUNDS):
                for callers in CALLERS:
                    rates[callers].append(await measure(note, callers))
            one = median(rates[1])
            for callers in CALLERS:
                rate = median(rates[callers])
                goal = f" (goal {GOALS[callers]:g})" if callers in GOALS else ""
                print(f"{name:<9} {kind:<8} {callers:>4} callers {rate:>9,.0f} jobs/s {rate / one:>7.1f} x one{goal}", flush=True)


def main() -> None:
    """Measure both databases."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(compare("sqlite", f"sqlite:///{folder}/jobs.db"))
    with running_postgres() as server, fresh_postgres(server) as dsn:
        asyncio.run(compare("postgres", dsn))


if __name__ == "__main__":
    main()
