"""How exactly recurring jobs fire, what a million of them cost, and what idle upkeep costs."""

from __future__ import annotations

import argparse
import asyncio
import resource
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import NamedTuple

import psycopg

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.support.postgres_server import running_postgres
from tests.support.stores import fresh_postgres, migrate_sqlite
from windlass import JobContext, Windlass
from windlass.clock import DatabaseClock
from windlass.core.cadence import Every, Recurrence
from windlass.core.job import Lease, NewJob
from windlass.core.outcome import Returned, Run, decide
from windlass.store import Store, open_store
from windlass.store.batches import microseconds
from windlass.store.sqlite_library import sqlite_driver as driver
from windlass.testing import FakeClock
from windlass.upkeep.loop import Upkeep

PERIOD = timedelta(seconds=5)
LEASE = timedelta(seconds=60)
LATE_MS = 50.0
TAKE_MS = 10.0
STEP = timedelta(milliseconds=50)
tokens = count(time.monotonic_ns())

CADENCE = Recurrence(cadence=Every(timedelta(days=1)), fixed_rate=True).encode()
MANY = {
    "postgresql": """
        with doc as (
            insert into windlass_jobs (
                task, lane, state, wait_reason, run_at, slot_at, cadence, name, created_at, updated_at
            )
            select 'task-' || n % 20, 'default', 'scheduled', 'recurrence', at, at, '{cadence}', 'job-' || n, at, at
            from (select n, timestamptz '{base}' + n * interval '5 ms' as at from generate_series(1, {rows}) as n) as planned
            returning id
        ) insert into windlass_bodies (job_id, payload) select id, '{{}}' from doc""",
    "sqlite": """
        insert into windlass_jobs (task, lane, state, wait_reason, run_at, slot_at, cadence, name, created_at, updated_at)
        with recursive n (n) as (select 1 union all select n + 1 from n where n < {rows})
        select 'task-' || (n % 20), 'default', 'scheduled', 'recurrence', {base} + n * 5000, {base} + n * 5000, '{cadence}',
            'job-' || n, {base}, {base} from n;
        insert into windlass_bodies (job_id, payload) select id, '{{}}' from windlass_jobs where true""",
}


class Place(NamedTuple):
    """A database."""

    name: str
    url: str


def percentile(values: list[float], place: int) -> float:
    """Give the value that so many of a hundred do not exceed."""
    return statistics.quantiles(values, n=100)[place - 1]


def show(what: str, values: list[float], goal_ms: float) -> bool:
    """Print a line; says whether the goal was met."""
    high = percentile(values, 99)
    verdict = "ok" if high <= goal_ms else "MISSED"
    line = f"{what:<52} p50 {statistics.median(values):7.2f} ms  p99 {high:7.2f} ms  max {max(values):7.2f} ms"
    print(f"{line}  goal p99 {goal_ms:.0f}  {verdict}", flush=True)
    return high <= goal_ms


async def measure_machine(times: int) -> None:
    """Sleep until distinct times and do nothing then: what is late here is the machine's doing."""
    loop = asyncio.get_running_loop()
    start, late_ms = loop.time() + 0.1, []
    for turn in range(times):
        due = start + turn * (PERIOD / 200).total_seconds()
        await asyncio.sleep(due - loop.time())
        late_ms.append((loop.time() - due) * 1000)
    show("the machine: bare sleeps", late_ms, LATE_MS)


async def measure_lateness(place: Place, jobs: int, turns: int) -> bool:
    """Run jobs at distinct times on a worker with its upkeep; from the planned time to the first line of the handler."""
    late_ms: list[float] = []
    app = Windlass(place.url)

    @app.task
    async def tick(ctx: JobContext) -> None:
        assert ctx.slot_at is not None
        late_ms.append((datetime.now(UTC) - ctx.slot_at) / timedelta(milliseconds=1))

    async with app, app.working():
        store = await app.store()
        start = await store.clock() + timedelta(seconds=1)
        rule = Recurrence(cadence=Every(PERIOD), fixed_rate=True)
        step = PERIOD / jobs
        await store.enqueue([NewJob(task="tick", recurrence=rule, run_at=start + step * place_) for place_ in range(jobs)])
        await asyncio.sleep((PERIOD * turns).total_seconds() + 1.5)
    assert len(late_ms) >= jobs * turns, "every slot fires"
    return show(f"{place.name}: lateness of {jobs} jobs, {len(late_ms)} fires", late_ms, LATE_MS)


@contextmanager
def raw(url: str) -> Iterator[psycopg.Connection | driver.Connection]:
    """Open a connection below the store."""
    if url.startswith("sqlite"):
        connection = driver.connect(url.removeprefix("sqlite:///"), isolation_level=None)
        yield connection
        connection.close()
    else:
        with psycopg.connect(url, autocommit=True) as opened:
            yield opened


def fill(place: Place, rows: int, base: datetime) -> None:
    """Put a million schedules into the table without the verbs."""
    dialect = place.url.partition(":")[0]
    start = str(microseconds(base)) if dialect == "sqlite" else base.isoformat()
    with raw(place.url) as connection:
        text = MANY[dialect].format(rows=rows, base=start, cadence=CADENCE)
        for statement in text.split(";\n"):
            connection.execute(statement)
        connection.execute("analyze" if dialect == "sqlite" else "vacuum analyze")
        if dialect != "sqlite":
            # Else the server writes back what was loaded while we measure.
            connection.execute("checkpoint")


async def measure_many(place: Place, rows: int, rounds: int) -> bool:
    """Take what is due among a million schedules, ten at a time, at a time the bench sets."""
    now = datetime(2030, 1, 1, tzinfo=UTC)
    began = time.perf_counter()
    fill(place, rows, now)
    print(f"{place.name}: {rows} schedules loaded in {time.perf_counter() - began:.0f} s", flush=True)
    clock = FakeClock(now)
    store = open_store(place.url, rng=Random(1)).at(clock)
    took_ms: list[float] = []
    taken = 0
    for turn in range(rounds + 20):
        now = clock.advance(seconds=STEP.total_seconds())
        began = time.perf_counter()
        promoted = await store.promote()
        jobs = await store.claim(await store.slices(), 100, Lease(next(tokens), "bench", LEASE))
        if turn >= 20:
            took_ms.append((time.perf_counter() - began) * 1000)
        assert promoted.jobs == len(jobs), "what is promoted is claimed"
        taken += len(jobs)
        await store.finish([decide(job, Returned(), Run(now, now), now=now, rng=Random(1)) for job in jobs])
    await store.aclose()
    per_round = taken / (rounds + 20)
    return show(f"{place.name}: promote + claim of {per_round:.0f} due of {rows}", took_ms, TAKE_MS)


async def measure_idle(place: Place, instances: int, seconds: float) -> None:
    """Run so many idle upkeeps in this process and count what they cost together."""
    stores: list[Store] = [open_store(place.url, rng=Random(seed)) for seed in range(instances)]
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(Upkeep(store, clock=DatabaseClock(await store.clock()), name=f"idle-{number}").run())
            for number, store in enumerate(stores)
        ]
        await asyncio.sleep(2)
        before = resource.getrusage(resource.RUSAGE_SELF)
        await asyncio.sleep(seconds)
        after = resource.getrusage(resource.RUSAGE_SELF)
        for task in tasks:
            task.cancel()
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(f"{place.name}: {instances} idle upkeeps: {cpu / seconds / instances:.3%} of a core each", flush=True)
    for store in stores:
        await store.aclose()


def sqlite_url(folder: str, name: str) -> str:
    """Make a file with the tables."""
    path = Path(folder) / f"{name}.db"
    migrate_sqlite(path)
    return f"sqlite:///{path}"


async def main() -> int:
    """Measure everything; the exit code says whether the goals were met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=200)
    parser.add_argument("--turns", type=int, default=4)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=400)
    parser.add_argument("--seconds", type=float, default=10.0)
    args = parser.parse_args()
    is_met = True
    await measure_machine(400)
    with ExitStack() as stack:
        server = stack.enter_context(running_postgres())
        folder = stack.enter_context(TemporaryDirectory())
        for name in ("few", "idle", "many"):
            places = [
                Place("postgres", stack.enter_context(fresh_postgres(server))),
                Place("sqlite", sqlite_url(folder, name)),
            ]
            for place in places:
                match name:
                    case "few":
                        is_met &= await measure_lateness(place, args.jobs, args.turns)
                    case "idle":
                        await measure_idle(place, 10, args.seconds)
                    case _:
                        is_met &= await measure_many(place, args.rows, args.rounds)
    return 0 if is_met else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
