"""Measures what looks at a million jobs cost the database: a monitor's scrape, `stats`, each view of `top`, the first page."""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import product
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

# In place of this folder, whose modules have names of others.
sys.path.pop(0)
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import psycopg
from psycopg.rows import tuple_row

from benchmarks.many_jobs import CHOICES, databases, fill
from tests.store.builders import a_lease
from windlass.core.worker import NewWorker
from windlass.store import open_store, postgres, sqlite
from windlass.store.calls import insights, overview, top
from windlass.store.calls.call import Call, Means, Step
from windlass.store.queries import queries
from windlass.store.sqlite_library import sqlite_driver as driver

ROUNDS = 15
# A driver prepares a statement that comes again and again: the live view and the monitors use one connection for long.
WARM_UPS = 12
MINUTES = 60
# How many pairs of a wait and a duration are seen of each task in each lane within a minute.
KINDS = 12
_LONG = timedelta(hours=6)
LOOKS: dict[str, tuple[float, Callable[[], Call[Any]]]] = {
    "scrape": (20.0, insights.scrape),
    "stats": (5.0, lambda: insights.summary(is_whole=False)),
    "stats --json": (5.0, insights.summary),
    **{f"top, {view}": (5.0, partial(top.top, {view})) for view in ("lanes", "tasks", "workers", "slowest", "failing")},
    "first page": (20.0, lambda: overview.overview(minutes=MINUTES)),
    "first page again": (20.0, lambda: overview.overview(minutes=5)),
}
"""The goal in milliseconds, and the call."""


class Cost(NamedTuple):
    """What one statement took the database, in milliseconds."""

    query: str
    spent: float


class SqliteProbe:
    """Measures on a connection as a store opens it; the statements run in this thread."""

    def __init__(self, url: str) -> None:
        """Open the file."""
        self._connection = sqlite._connect(url.removeprefix("sqlite:///"))
        self._texts = queries("sqlite")

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Let a look see one moment."""
        self._connection.execute("begin")
        yield
        self._connection.execute("commit")

    def run(self, step: Step) -> tuple[Any, Cost]:
        """Run a step; what counts is the time inside its statements."""
        began = time.perf_counter()
        found = sqlite._run_step(self._connection, self._texts, step)
        return found, Cost(step.query, (time.perf_counter() - began) * 1000)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


class PostgresProbe:
    """Measures by what the server itself says of each message: parsing, planning and running, without the way to it."""

    def __init__(self, url: str) -> None:
        """Connect, as a user who may have every duration told."""
        self._connection = psycopg.connect(url, autocommit=True, options="-c client_min_messages=log -c log_duration=on")
        self._connection.add_notice_handler(self._hear)
        self._heard_ms = 0.0

    def _hear(self, notice: psycopg.errors.Diagnostic) -> None:
        text = notice.message_primary or ""
        if text.startswith("duration: "):
            self._heard_ms += float(text.split()[1])

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Let a look see one moment."""
        self._connection.execute("begin isolation level repeatable read read only")
        yield
        self._connection.execute("commit")

    def run(self, step: Step) -> tuple[Any, Cost]:
        """Run a step as the store does."""
        self._heard_ms = 0.0
        cursor = self._connection.cursor(binary=True, row_factory=tuple_row)
        found = cursor.execute(postgres._texts.of(step), postgres._params(step, is_announced=False)).fetchall()
        return found, Cost(step.query, self._heard_ms)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


Probe = SqliteProbe | PostgresProbe


def look(probe: Probe, call: Call[Any]) -> list[Cost]:
    """Run a call and return what each of its statements took."""
    costs: list[Cost] = []
    steps = call.given(Means(Random(7))).begin()
    with probe.transaction():
        try:
            step = next(steps)
            while True:
                found, cost = probe.run(step)
                costs.append(cost)
                step = steps.send(found)
        except StopIteration:
            return costs


def add_traffic(url: str) -> None:
    """Add what a queue in use has: retries, workers with leases, and runs of the last hour, some of them not yet folded."""
    minute = datetime.now(UTC).replace(second=0, microsecond=0)
    slices = [(f"task-{task}", f"lane-{lane}") for task, lane in product(range(20), range(3))]
    past = [
        _delta(minute - age * timedelta(minutes=1), *one, n) for age, one, n in product(range(1, MINUTES), slices, range(KINDS))
    ]
    fresh = [_delta(minute, *one, n) for one, n in product(slices, range(KINDS))]
    retried = "update windlass_jobs set executions = 2, attempt = 2 where id % 50 = 0 and state in ('completed', 'failed')"
    _write(url, retried, past)
    asyncio.run(_work(url))
    _write(url, "analyze", fresh)


def _delta(minute: datetime, task: str, lane: str, kind: int) -> tuple[Any, ...]:
    return minute, task, lane, "completed" if kind else "failed", 10 + kind % 3, 15 + kind // 3, 40, 400, 900


def _write(url: str, statement: str, deltas: list[tuple[Any, ...]]) -> None:
    columns = "minute, task, lane, status, wait_bucket, run_bucket, runs, wait_ms, duration_ms"
    text = f"insert into windlass_run_deltas ({columns}) values ({', '.join('?' * 9)})"
    if url.startswith("sqlite"):
        connection = driver.connect(url.removeprefix("sqlite:///"))
        connection.execute(statement)
        connection.executemany(text, [(int(one[0].timestamp()) * 1_000_000, *one[1:]) for one in deltas])
        connection.commit()
        connection.close()
    else:
        with psycopg.connect(url, autocommit=True) as postgres_connection:
            postgres_connection.execute(statement)
            postgres_connection.cursor().executemany(text.replace("?", "%s"), deltas)
            postgres_connection.execute("vacuum analyze")


async def _work(url: str) -> None:
    """Fold what was counted, and let workers take jobs."""
    store = open_store(url, rng=Random(7))
    try:
        while await store.runs.fold(10_000) or await store.fold_counts(10_000):
            pass
        for number in range(10):
            name = f"worker-{number}"
            await store.workers.register(NewWorker(id=name, host="h", pid=number + 1, version="1", pools='{"*": 20}'))
            await store.claim(await store.slices(), 20, a_lease(name, _LONG), started=True)
    finally:
        await store.database.aclose()


def measure(name: str, url: str, rows: int, *, has_statements: bool) -> bool:
    """Measure every look on one database; returns whether all goals are met."""
    fill(name, url, rows)
    add_traffic(url)
    opened: type[SqliteProbe | PostgresProbe] = SqliteProbe if url.startswith("sqlite") else PostgresProbe
    print(f"  {'database ms':<20} statements   median    least  first on a connection")
    kept = []
    for what, (goal, call) in LOOKS.items():
        probe = opened(url)
        first = look(probe, call())
        for _ in range(WARM_UPS):
            look(probe, call())
        rounds = [look(probe, call()) for _ in range(ROUNDS)]
        probe.close()
        sums = [_sum(costs) for costs in rounds]
        kept.append(statistics.median(sums) < goal)
        print(
            f"  {what:<20} {len(first):>10} {statistics.median(sums):>8.2f} {min(sums):>8.2f} {_sum(first):>22.2f}"
            f"   goal < {goal:g}  {'ok' if kept[-1] else 'MISSED'}",
            flush=True,
        )
        if has_statements:
            _print_statements(rounds)
    return all(kept)


def _sum(costs: list[Cost]) -> float:
    return sum(one.spent for one in costs)


def _print_statements(rounds: list[list[Cost]]) -> None:
    """Print what each statement of a look takes, the dearest first."""
    found = [(each[0].query, [one.spent for one in each]) for each in zip(*rounds, strict=True)]
    for query, spent in sorted(found, key=lambda one: -statistics.median(one[1])):
        print(f"    {query:<29} {statistics.median(spent):>8.2f} {min(spent):>8.2f}")


def main() -> int:
    """Measure on the databases that were chosen."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--database", choices=CHOICES, default="both")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--statements", action="store_true", help="print what each statement takes")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as place, databases(chosen.database, Path(place)) as urls:
        kept = [measure(name, url, chosen.rows, has_statements=chosen.statements) for name, url in urls.items()]
    return 0 if all(kept) else 1


if __name__ == "__main__":
    sys.exit(main())
