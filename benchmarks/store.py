"""Store verbs against the same statements sent raw, in one run: only the ratios mean anything."""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from itertools import count
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import psycopg

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.support.postgres_server import running_postgres
from tests.support.stores import fresh_postgres, migrate_sqlite
from windlass.core.job import Lease, NewJob, Slices
from windlass.core.outcome import Returned, Run, decide
from windlass.core.payload import JsonText
from windlass.store import Store, batches, open_store
from windlass.store.queries import PARAMETER, queries
from windlass.store.rows import SHAPES
from windlass.store.sqlite import Sqlite, run_statements
from windlass.store.sqlite_library import sqlite_driver as driver

PAYLOAD = JsonText('{"to":"ann@example.org","template":"welcome","data":{"name":"Ann","plan":"gold","visits":12345}}')
LEASE = timedelta(seconds=60)
tokens = count(1)
Drain = Callable[[int], Awaitable[int]]


class Result(NamedTuple):
    """One line of the table."""

    what: str
    raw: float
    ours: float
    ratio: float
    goal: str


class Bench:
    """A database, its store, and the same statements without the store."""

    def __init__(self, name: str, store: Store, target: str) -> None:
        """Measure `store`, whose database is at `target`."""
        self.name = name
        self.store = store
        self.target = target
        self.is_sqlite = isinstance(store.database, Sqlite)

    async def enqueue(self, jobs: int, batch: int, *, task: str = "work") -> float:
        """Enqueue through the store; returns jobs per second."""
        started = time.perf_counter()
        for _ in range(0, jobs, batch):
            await self.store.enqueue([NewJob(task=task, payload=PAYLOAD) for _ in range(batch)])
        return jobs / (time.perf_counter() - started)

    async def enqueue_raw(self, jobs: int, batch: int) -> float:
        """Send the same insert with a document made beforehand."""
        entries = [batches.new_job(NewJob(task="work", payload=PAYLOAD))] * batch
        params = {"jobs": batches.in_order(entries), "now": None}
        async with self._raw(1) as [run]:
            started = time.perf_counter()
            for _ in range(0, jobs, batch):
                await run("insert_jobs", params, 0)
            return jobs / (time.perf_counter() - started)

    async def drain(self, batch: int, most: int = sys.maxsize) -> float:
        """Claim and finish through the store, two loops overlapped; returns jobs per second."""
        found = await self.store.slices()
        done = 0
        rng = Random(1)

        async def loop() -> None:
            nonlocal done
            while done < most:
                lease = Lease(next(tokens), "bench", LEASE)
                jobs = await self.store.claim(found, batch, lease, started=False)
                if not jobs:
                    return
                moment = jobs[0].claimed_at
                endings = [decide(job, Returned(), Run(moment, moment), now=moment, rng=rng) for job in jobs]
                done += len(await self.store.finish(endings))

        started = time.perf_counter()
        await asyncio.gather(*(loop() for _ in range(1 if self.is_sqlite else 2)))
        return done / (time.perf_counter() - started)

    async def drain_raw(self, batch: int, most: int = sys.maxsize) -> float:
        """Claim and finish by the bare statements, two connections overlapped (SQLite: one)."""
        found = await self.store.slices()
        done = 0

        async def loop(run: Callable[..., Awaitable[list[Any]]]) -> None:
            nonlocal done
            while done < most:
                token = next(tokens)
                rows = await run("claim", _claim_params(found, batch, token), 1)
                if not rows:
                    return
                now = '"started_us":1,"finished_us":1'
                group = ",".join([f'{{"id":{row[0]},"token":{token},{now}}}' for row in rows])
                document = (
                    '[{"state":"completed","attempt":1,"executions":1,"crashes":0,"consecutive_failures":0,'
                    f'"completed_runs":1,"status":"completed","rows":[{group}]}}]'
                )
                params = {"batch": document, "expired_before": None, "any_death": False, "any_recurring": False, "now": None}
                done += len(await run("finish", params, 0))

        async with self._raw(1 if self.is_sqlite else 2) as runs:
            started = time.perf_counter()
            await asyncio.gather(*(loop(run) for run in runs))
            return done / (time.perf_counter() - started)

    def _raw(self, connections: int) -> _RawSqlite | _RawPostgres:
        return _RawSqlite(self.target) if self.is_sqlite else _RawPostgres(self.target, connections)


def _claim_params(found: Slices, limit: int, token: int) -> dict[str, Any]:
    return {
        "version": found.version,
        "limit": limit,
        "token": token,
        "worker": "bench",
        "lease": LEASE,
        "started": False,
        "now": None,
        "lane_0": found.open[0].lane if found.open else "",
        "task_0": found.open[0].task if found.open else "",
    }


class _RawPostgres:
    """Bare psycopg connections."""

    def __init__(self, dsn: str, connections: int) -> None:
        self._dsn = dsn
        self._number = connections
        self._open: list[psycopg.AsyncConnection[Any]] = []

    async def __aenter__(self) -> list[Callable[..., Awaitable[list[Any]]]]:
        for _ in range(self._number):
            self._open.append(await psycopg.AsyncConnection.connect(self._dsn, autocommit=True, prepare_threshold=1))
        return [self._runner(connection) for connection in self._open]

    async def __aexit__(self, *_: object) -> None:
        for connection in self._open:
            await connection.close()

    @staticmethod
    def _runner(connection: psycopg.AsyncConnection[Any]) -> Callable[..., Awaitable[list[Any]]]:
        texts: dict[str, Any] = {}

        async def run(name: str, params: dict[str, Any], arms: int) -> list[Any]:
            if name not in texts:
                [statement] = queries("postgres").statements(name, arms)
                texts[name] = PARAMETER.sub(r"%(\1)s", statement.replace("%", "%%"))
            cursor = connection.cursor(binary=True)
            await cursor.execute(texts[name], params)
            return await cursor.fetchall()

        return run


_PACKED = {name: shape.packed for name, shape in SHAPES.items()}


class _RawSqlite:
    """One bare connection in this thread, in the journal and sync mode of the store's file."""

    def __init__(self, path: str) -> None:
        self._connection = driver.connect(path, isolation_level=None, cached_statements=512, timeout=60)
        for pragma in ("synchronous = full", "cache_size = -65536", "temp_store = memory"):
            self._connection.execute(f"pragma {pragma}")

    async def __aenter__(self) -> list[Callable[..., Awaitable[list[Any]]]]:
        async def run(name: str, params: dict[str, Any], arms: int) -> list[Any]:
            plain = {key: _plain(value) for key, value in params.items()}
            connection = self._connection
            connection.execute("begin immediate")
            plain["now"] = time.time_ns() // 1000
            if name == "insert_jobs":
                found = connection.execute("select seq from sqlite_sequence where name = 'windlass_jobs'").fetchone()
                plain["last_id"] = found[0] if found else 0
            statements = queries("sqlite").statements(name, arms)
            rows = run_statements(connection.cursor(), statements, plain, packed=_PACKED.get(name, 0))
            connection.execute("commit")
            return list(rows)

        return [run]

    async def __aexit__(self, *_: object) -> None:
        self._connection.close()


def _plain(value: Any) -> Any:
    return batches.microseconds(value) if isinstance(value, timedelta) else value


async def interleaved(rounds: int, *measures: Callable[[], Awaitable[float]]) -> list[float]:
    """Take turns, so that a machine that slows down slows all of them; returns medians."""
    seen: list[list[float]] = [[] for _ in measures]
    for _ in range(rounds):
        for place, measure in enumerate(measures):
            seen[place].append(await measure())
    return [statistics.median(values) for values in seen]


async def verbs(bench: Bench, jobs: int, rounds: int, batch: int) -> list[Result]:
    """Enqueue, then claim and finish with history, against raw."""

    async def after(fill: Awaitable[float], drain: Awaitable[float]) -> float:
        await fill
        return await drain

    raw, ours = await interleaved(rounds, lambda: bench.enqueue_raw(jobs, batch), lambda: bench.enqueue(jobs, batch))
    results = [Result(f"{bench.name}: enqueue, batch {batch}", raw, ours, ours / raw, "≥ 0.6")]
    await bench.drain(500)
    raw, ours = await interleaved(
        rounds,
        lambda: after(bench.enqueue_raw(jobs, 1000), bench.drain_raw(batch)),
        lambda: after(bench.enqueue_raw(jobs, 1000), bench.drain(batch)),
    )
    results.append(Result(f"{bench.name}: claim + finish, batch {batch}", raw, ours, ours / raw, "≥ 0.7"))
    return results


async def beside(bench: Bench, other: Bench, what: str, *, jobs: int, rounds: int) -> Result:
    """Compare the drain of an empty table with the drain of a full one, interleaved."""

    async def one(which: Bench) -> float:
        await which.enqueue_raw(jobs, 1000)
        return await which.drain(200)

    empty, full = await interleaved(rounds, lambda: one(bench), lambda: one(other))
    return Result(f"{bench.name}: drain {what}", empty, full, full / empty, "≥ 0.9")


FINISHED = {
    "postgres": """
        with doc as (
            insert into windlass_jobs (task, lane, state, run_at, created_at, updated_at, closed_at, attempt, executions)
            select 'work', 'default', 'completed', now() - interval '1 hour', now(), now(), now() - n * interval '1 ms', 1, 1
            from generate_series(1, {rows}) as n returning id
        ), bodies as (insert into windlass_bodies (job_id, payload) select id, '{payload}' from doc)
        insert into windlass_executions (job_id, number, attempt, token, worker, started_at, finished_at, wait_ms, status)
        select id, 1, 1, 1, 'w', now(), now(), 1, 'completed' from doc""",
    "sqlite": """
        insert into windlass_jobs (task, lane, state, run_at, created_at, updated_at, closed_at, attempt, executions)
        with recursive n (n) as (select 1 union all select n + 1 from n where n < {rows})
        select 'work', 'default', 'completed', 1, 1, 1, n, 1, 1 from n;
        insert into windlass_bodies (job_id, payload) select id, '{payload}' from windlass_jobs where true;
        insert into windlass_executions (job_id, number, attempt, token, worker, started_at, finished_at, wait_ms, status)
        select id, 1, 1, 1, 'w', 1, 1, 1, 'completed' from windlass_jobs""",
}
FUTURE = {
    "postgres": """
        with doc as (
            insert into windlass_jobs (task, lane, state, wait_reason, run_at, created_at, updated_at)
            select 'work', 'default', 'scheduled', 'delay', now() + interval '1 day' + n * interval '1 s', now(), now()
            from generate_series(1, {rows}) as n returning id
        ) insert into windlass_bodies (job_id, payload) select id, '{payload}' from doc""",
    "sqlite": """
        insert into windlass_jobs (task, lane, state, wait_reason, run_at, created_at, updated_at)
        with recursive n (n) as (select 1 union all select n + 1 from n where n < {rows})
        select 'work', 'default', 'scheduled', 'delay', 9000000000000000 + n, 1, 1 from n;
        insert into windlass_bodies (job_id, payload) select id, '{payload}' from windlass_jobs where true""",
}
SLICED = {
    "postgres": """
        with doc as (
            insert into windlass_jobs (task, lane, state, wait_reason, priority, base_priority, run_at, created_at, updated_at)
            select 'task-' || n % 20, case when n <= {gated} then 'gated' else 'lane-' || n / 20 % 3 end, 'pending', 'new',
                case when n <= {gated} then 100 else 0 end, case when n <= {gated} then 100 else 0 end,
                now() - interval '1 hour' + n * interval '1 ms', now(), now()
            from generate_series(1, {gated} + {rows}) as n returning id
        ) insert into windlass_bodies (job_id, payload) select id, '{payload}' from doc""",
    "sqlite": """
        insert into windlass_jobs (task, lane, state, wait_reason, priority, base_priority, run_at, created_at, updated_at)
        with recursive n (n) as (select 1 union all select n + 1 from n where n < {gated} + {rows})
        select 'task-' || (n % 20), case when n <= {gated} then 'gated' else 'lane-' || (n / 20 % 3) end, 'pending', 'new',
            case when n <= {gated} then 100 else 0 end, case when n <= {gated} then 100 else 0 end, n, 1, 1 from n;
        insert into windlass_bodies (job_id, payload) select id, '{payload}' from windlass_jobs where true""",
}


MEASURES = ("verbs", "beside", "slices")


def fill(bench: Bench, texts: dict[str, str], **sizes: int) -> None:
    """Put rows into a table without the verbs, and let the database look at them once."""
    text = texts[bench.store.database.dialect].format(payload=PAYLOAD, **sizes)
    if bench.is_sqlite:
        connection = driver.connect(bench.target, isolation_level=None)
        connection.execute("begin immediate")
        for statement in text.split(";\n"):
            connection.execute(statement)
        connection.execute("commit")
        connection.close()
    else:
        with psycopg.connect(bench.target, autocommit=True) as connection:
            connection.execute(text)
            connection.execute("vacuum analyze")


async def slices(bench: Bench, rows: int, gated: int, rounds: int) -> Result:
    """Compare a claim over 60 open slices, with a gated backlog at the head, with a claim of one slice."""
    fill(bench, SLICED, rows=rows, gated=gated)
    dialect = bench.store.database.dialect
    at = "1" if dialect == "sqlite" else "now()"
    gate = f"insert into windlass_lanes (name, paused_at, updated_at) values ('gated', {at}, {at})"
    _execute(bench, gate)
    found = await bench.store.slices()
    assert len(found.open) == 60, len(found.open)
    turn = count()

    async def claim(*, is_single: bool) -> float:
        spent = []
        for _ in range(10):
            # Another slice each time: a slice emptied by this loop would be cheaper than it is in life.
            part = Slices(found.version, (found.open[next(turn) % 60],)) if is_single else found
            lease = Lease(next(tokens), "bench", LEASE)
            started = time.perf_counter()
            jobs = await bench.store.claim(part, 100, lease, started=False)
            spent.append((time.perf_counter() - started) * 1000)
            assert len(jobs) == 100, len(jobs)
        return statistics.median(spent)

    await claim(is_single=False)
    single, many = await interleaved(rounds, lambda: claim(is_single=True), lambda: claim(is_single=False))
    return Result(f"{bench.name}: claim of 60 slices, 100 k gated (ms)", single, many, many / single, "≤ 2")


def _execute(bench: Bench, sql: str) -> None:
    if bench.is_sqlite:
        connection = driver.connect(bench.target)
        connection.execute(sql)
        connection.commit()
        connection.close()
    else:
        with psycopg.connect(bench.target, autocommit=True) as connection:
            connection.execute(sql)


async def held_snapshot(bench: Bench, seconds: float) -> list[Result]:
    """Claim at 500 jobs a second before, while and after somebody holds an old snapshot open."""
    calm = await _paced(bench, seconds / 3)
    async with await psycopg.AsyncConnection.connect(bench.target) as holder:
        await holder.execute("set transaction isolation level repeatable read")
        await holder.execute("select count(*) from windlass_jobs")
        held = await _paced(bench, seconds)
    await _paced(bench, seconds * 2 / 3)
    after = await _paced(bench, seconds / 3)
    return [
        Result(f"{bench.name}: claim p99 under a snapshot held {seconds:.0f} s (ms)", calm, held, held / calm, "≤ 3"),
        Result(f"{bench.name}: claim p99 within {seconds:.0f} s after it (ms)", calm, after, after / calm, "≈ 1"),
    ]


async def _paced(bench: Bench, seconds: float) -> float:
    """Enqueue, claim and finish 500 jobs a second in steps of 10; returns the 99th percentile of a claim in ms."""
    spent = []
    rng = Random(1)
    started = time.perf_counter()
    found = Slices(0, ())
    for step in count(1):
        if time.perf_counter() - started > seconds:
            break
        await bench.store.enqueue([NewJob(task="work", payload=PAYLOAD) for _ in range(10)])
        # A pool knows its slices from the last look or from the wake-up; it looks again about once a second.
        if not found.open or step % 50 == 0:
            found = await bench.store.slices()
        before = time.perf_counter()
        jobs = await bench.store.claim(found, 10, Lease(next(tokens), "bench", LEASE), started=False)
        spent.append((time.perf_counter() - before) * 1000)
        moment = jobs[0].claimed_at
        await bench.store.finish([decide(job, Returned(), Run(moment, moment), now=moment, rng=rng) for job in jobs])
        await asyncio.sleep(max(0.0, started + step / 50 - time.perf_counter()))
    return statistics.quantiles(spent, n=100)[98]


@contextmanager
def fresh(kind: str, stack: ExitStack, folder: Path, server: Any) -> Iterator[Bench]:
    """Open a bench on an empty database."""
    rng = Random(1)
    if kind == "sqlite":
        path = folder / f"{next(tokens)}.db"
        migrate_sqlite(path)
        yield Bench("SQLite", open_store(f"sqlite:///{path}", rng=rng), str(path))
    else:
        dsn = stack.enter_context(fresh_postgres(server))
        yield Bench("PostgreSQL", open_store(dsn, rng=rng), dsn)


async def measure(options: argparse.Namespace) -> list[Result]:
    """Run every measurement that was asked for."""
    results: list[Result] = []
    scale = 1.0 if options.long else 0.1
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        server = stack.enter_context(running_postgres(is_durable=True)) if "postgres" in options.databases else None
        for kind in options.databases:
            benches = [stack.enter_context(fresh(kind, stack, folder, server)) for _ in range(6)]
            jobs = int(20_000 * max(scale, 0.25))
            for batch in (100, 200, 500) if "verbs" in options.measures else ():
                say(f"{kind}: verbs against raw, batch {batch}")
                results += await verbs(benches[0], jobs, options.rounds, batch)
                say_result(results[-2])
                say_result(results[-1])
            finished, future = options.finished or int(1_000_000 * scale), int(200_000 * scale)
            besides = ((f"{finished:,} finished", FINISHED, finished, 2), (f"{future:,} future", FUTURE, future, 3))
            for what, texts, rows, place in besides if "beside" in options.measures else ():
                say(f"{kind}: beside {what}")
                fill(benches[place], texts, rows=rows)
                results.append(await beside(benches[1], benches[place], f"beside {what}", jobs=jobs, rounds=options.rounds + 2))
                say_result(results[-1])
            if "slices" in options.measures:
                say(f"{kind}: slices")
                results.append(await slices(benches[4], int(200_000 * scale), int(100_000 * scale), options.rounds))
                say_result(results[-1])
            if kind == "postgres" and options.snapshot:
                say(f"{kind}: a snapshot held for {options.snapshot} s")
                results += await held_snapshot(benches[5], options.snapshot)
            for bench in benches:
                await bench.store.aclose()
    return results


def say(text: str) -> None:
    """Show what is going on."""
    print(f"… {text}", file=sys.stderr, flush=True)


def say_result(result: Result) -> None:
    """Show a line as soon as it is known."""
    print(f"  {result.what}: {result.ratio:.2f} ({result.goal})", file=sys.stderr, flush=True)


def print_results(results: Sequence[Result], headline: str) -> None:
    """Print a small table."""
    print(f"\n{headline}")
    print(f"{'':58}{'base':>10}{'ours':>10}{'ratio':>8}  goal")
    for result in results:
        print(f"{result.what:58}{result.raw:>10,.2f}{result.ours:>10,.2f}{result.ratio:>8.2f}  {result.goal}")


def main() -> None:
    """Measure and print a small table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--long", action="store_true", help="the full sizes: 1 M finished, 200 k future, 300 k pending")
    parser.add_argument("--measures", nargs="+", default=list(MEASURES), choices=MEASURES)
    parser.add_argument("--finished", type=int, help="finished jobs to drain beside: 10 million take half an hour and 20 GB")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--databases", nargs="+", default=["sqlite", "postgres"], choices=["sqlite", "postgres"])
    parser.add_argument("--snapshot", type=float, default=0, help="hold a snapshot open for this many seconds (60)")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    results = asyncio.run(measure(options))
    if options.json:
        print(json.dumps([result._asdict() for result in results]))
        return
    headline = f"SQLite {driver.sqlite_version}; jobs per second unless said; medians of {options.rounds} interleaved rounds"
    print_results(results, headline)


if __name__ == "__main__":
    main()
