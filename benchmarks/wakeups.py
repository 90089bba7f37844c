"""How soon an idle worker starts a new job, what listening costs while nothing happens, and what announcing costs."""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from itertools import count
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.support.postgres_server import running_postgres
from tests.support.stores import fresh_postgres, migrate_sqlite
from windlass.core.job import Lease, NewJob
from windlass.core.outcome import Returned, Run, decide
from windlass.core.payload import JsonText
from windlass.core.topic import Topic
from windlass.store import Store, open_store
from windlass.store.sqlite_library import sqlite_driver as driver

POLL = timedelta(seconds=5)
LEASE = timedelta(seconds=60)
tokens = count(time.monotonic_ns())
_spawner = multiprocessing.get_context("spawn")


class Place(NamedTuple):
    """A database, and the goals for it."""

    name: str
    url: str
    goal_ms: tuple[float, float]
    goal_across_ms: tuple[float, float]


async def take(store: Store, lane: str) -> int:
    """Claim and finish what there is of a lane; returns how many."""
    found = await store.slices()
    mine = found._replace(open=tuple(each for each in found.open if each.lane == lane))
    jobs = await store.claim(mine, 100, Lease(next(tokens), "bench", LEASE))
    taken_ns = time.monotonic_ns()
    if jobs:
        times.extend((taken_ns - json.loads(job.payload)["at"]) / 1e6 for job in jobs if "at" in job.payload)
        moment = jobs[0].claimed_at
        await store.finish([decide(job, Returned(), Run(moment, moment), now=moment, rng=Random(1)) for job in jobs])
    return len(jobs)


times: list[float] = []
"""How long each job waited, from the call that enqueued it to the claim that returned it."""


class Sleeper:
    """An idle worker: looks when it is woken."""

    def __init__(self, store: Store, lane: str) -> None:
        """Serve one lane."""
        self.store = store
        self.lane = lane
        self.looks = 0

    async def run(self) -> None:
        """Work until cancelled."""
        wakeups = self.store.wakeups
        while True:
            noted = wakeups.generation(Topic.WORK)
            self.looks += 1
            if not await take(self.store, self.lane):
                await wakeups.wait(noted, Topic.WORK, at_most=POLL)


async def sleep_in_process(url: str, lane: str, pipe: Connection) -> None:
    """Be an idle worker in a process of its own; answers each word with what happened since the last."""
    store = open_store(url, rng=Random(2))
    sleeper = Sleeper(store, lane)
    async with store.wakeups as wakeups, asyncio.TaskGroup() as tasks:
        working = tasks.create_task(sleeper.run())
        while not wakeups.is_listening:
            await wakeups.wait(wakeups.generation(), at_most=POLL)
        pipe.send("ready")
        while True:
            cpu_s, looks = time.process_time(), sleeper.looks
            times.clear()
            if await asyncio.to_thread(pipe.recv) == "end":
                break
            pipe.send((list(times), time.process_time() - cpu_s, sleeper.looks - looks))
        working.cancel()
    await store.aclose()


def enter(url: str, lane: str, pipe: Connection) -> None:
    """Begin the process."""
    asyncio.run(sleep_in_process(url, lane, pipe))


@contextmanager
def other_process(url: str, lane: str = "bench") -> Iterator[Callable[[], tuple[list[float], float, int]]]:
    """Run an idle worker in another process; gives a function that says (waits in ms, CPU seconds, looks) since the last call."""
    ours, theirs = multiprocessing.Pipe()
    process = _spawner.Process(target=enter, args=(url, lane, theirs), daemon=True)
    process.start()
    assert ours.recv() == "ready"

    def report() -> tuple[list[float], float, int]:
        ours.send("report")
        answer: tuple[list[float], float, int] = ours.recv()
        return answer

    yield report
    ours.send("end")
    process.join()


async def enqueue_now_and_then(store: Store, rounds: int, *, then_take: bool = False) -> None:
    """Enqueue one job at a time, far enough apart that the worker is idle again."""
    rng = Random(3)
    for _ in range(rounds):
        await asyncio.sleep(rng.uniform(0.02, 0.06))
        await store.enqueue([NewJob(task="work", lane="bench", payload=JsonText(f'{{"at":{time.monotonic_ns()}}}'))])
        if then_take:
            await take(store, "bench")
    await asyncio.sleep(0.3)


def show(what: str, waits: list[float], goal_ms: tuple[float, float], rounds: int) -> bool:
    """Print a line; says whether the goal was met."""
    assert len(waits) == rounds, "every job is picked up"
    median, high = statistics.median(waits), statistics.quantiles(waits, n=100)[98]
    is_met = median <= goal_ms[0] and high <= goal_ms[1]
    goal = f"goal {goal_ms[0]:.0f} / {goal_ms[1]:.0f}"
    line = f"{what:<44} p50 {median:6.2f} ms  p99 {high:6.2f} ms  max {max(waits):6.2f} ms"
    print(f"{line}  {goal}  {'ok' if is_met else 'MISSED'}", flush=True)
    return is_met


async def measure_pick_up(place: Place, rounds: int) -> bool:
    """Measure idle pick-up, in one process and across two."""
    store = open_store(place.url, rng=Random(1))
    times.clear()
    await enqueue_now_and_then(store, rounds, then_take=True)
    # On a busy machine most of the wait is here.
    show(f"{place.name}: enqueue and claim, nobody sleeps", list(times), place.goal_ms, rounds)
    sleeper = Sleeper(store, "bench")
    times.clear()
    async with store.wakeups, asyncio.TaskGroup() as tasks:
        working = tasks.create_task(sleeper.run())
        await asyncio.sleep(0.5)
        await enqueue_now_and_then(store, rounds)
        working.cancel()
    is_met = show(f"{place.name}: pick-up in one process", list(times), place.goal_ms, rounds)
    with other_process(place.url) as report:
        await enqueue_now_and_then(store, rounds)
        is_met &= show(f"{place.name}: pick-up across processes", report()[0], place.goal_across_ms, rounds)
    await store.aclose()
    return is_met


async def measure_cpu(place: Place, seconds: float) -> None:
    """Measure what an idle listener costs, alone and beside a process that is busy with another lane."""
    store = open_store(place.url, rng=Random(1))
    with other_process(place.url) as report:
        await asyncio.sleep(1)
        report()
        await asyncio.sleep(seconds)
        _, cpu_s, looks = report()
        print(f"{place.name}: idle listener, alone{'':<14} {cpu_s / seconds:6.2%} of a core, {looks / seconds:5.1f} looks/s")
        started = time.perf_counter()
        done = 0
        while time.perf_counter() - started < seconds:
            await store.enqueue([NewJob(task="work", lane="busy")] * 10)
            done += await take(store, "busy")
        _, cpu_s, looks = report()
        print(
            f"{place.name}: idle listener, busy neighbour{'':<5} {cpu_s / seconds:6.2%} of a core, {looks / seconds:5.1f} looks/s"
            f" ({done / seconds:.0f} jobs/s beside it)",
            flush=True,
        )
    await store.aclose()


class Mute:
    """Announces nothing."""

    def announce(self, _words: object) -> None:
        """Say nothing."""


async def measure_announcing(place: Place, turns: int) -> None:
    """Compare enqueueing with and without announcements, taking turns, while somebody listens."""
    store = open_store(place.url, rng=Random(1))
    database: Any = store.database
    voices = {True: database._announcer, False: Mute()}
    with other_process(place.url, "nowhere"):
        for name, run in {"bulk of 1000": bulk, "one caller": singly, "20 callers": together}.items():
            rates: dict[bool, list[float]] = {True: [], False: []}
            for turn in range(2 * turns):
                is_on = turn % 4 in {0, 3}
                database._announcer = voices[is_on]
                rates[is_on].append(await run(store))
            on, off = statistics.median(rates[True]), statistics.median(rates[False])
            print(
                f"{place.name}: enqueue, {name:<14} {on:8.0f} jobs/s, without announcing {off:8.0f}, ratio {on / off:.3f}",
                flush=True,
            )
    database._announcer = voices[True]
    await store.aclose()


async def bulk(store: Store) -> float:
    """Enqueue thousands by the thousand."""
    return await rate(5000, lambda: store.enqueue([NewJob(task="work", lane="bulk")] * 1000), 1000)


async def singly(store: Store) -> float:
    """Enqueue one after the other."""
    return await rate(500, lambda: store.enqueue([NewJob(task="work", lane="bulk")]), 1)


async def together(store: Store) -> float:
    """Enqueue from twenty coroutines."""
    rates = await asyncio.gather(*(rate(50, lambda: store.enqueue([NewJob(task="work", lane="bulk")]), 1) for _ in range(20)))
    return sum(rates)


async def rate(jobs: int, enqueue: Callable[[], Awaitable[Any]], batch: int) -> float:
    """Give jobs per second."""
    started = time.perf_counter()
    for _ in range(0, jobs, batch):
        await enqueue()
    return jobs / (time.perf_counter() - started)


def sqlite_url(folder: str, mode: str) -> str:
    """Make a file with this journal mode; an existing file keeps it."""
    path = Path(folder) / f"{mode}.db"
    with driver.connect(str(path)) as connection:
        connection.execute(f"pragma journal_mode = {mode}")
        connection.execute("create table keeps_the_mode (x)")
    connection.close()
    migrate_sqlite(path)
    return f"sqlite:///{path}"


async def main() -> int:
    """Measure everything; the exit code says whether the goals were met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--turns", type=int, default=12)
    args = parser.parse_args()
    is_met = True
    with ExitStack() as stack:
        dsn = stack.enter_context(fresh_postgres(stack.enter_context(running_postgres())))
        folder = stack.enter_context(TemporaryDirectory())
        postgres = Place("postgres", dsn, (3, 15), (3, 15))
        places = [
            postgres,
            Place("sqlite wal", sqlite_url(folder, "wal"), (3, 15), (6, 20)),
            Place("sqlite rollback", sqlite_url(folder, "delete"), (3, 15), (6, 40)),
        ]
        for place in places:
            is_met &= await measure_pick_up(place, args.rounds)
        for place in places:
            await measure_cpu(place, args.seconds)
        await measure_announcing(postgres, args.turns)
    return 0 if is_met else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
