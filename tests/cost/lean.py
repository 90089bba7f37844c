"""The least that a job can cost: one narrow table with one index, batches, no rules and no history of their own."""

from __future__ import annotations

import time
from pathlib import Path

import psycopg

from windlass.store.sqlite_library import sqlite_driver as driver

_PAYLOAD = '{"text":"' + "x" * 80 + '"}'
_BATCH = 200
_TABLES = """
    create table lean_jobs (
        id {key}, task text, lane text, state text, priority integer, run_at {number}, token {number}, attempt integer,
        payload text, finished_at {number}
    );
    create index lean_pending on lean_jobs (priority, run_at, id) where state = 'pending';
    create table lean_runs (job_id {number}, number integer, started_at {number}, finished_at {number})
"""


def sqlite_cost(folder: Path, jobs: int) -> tuple[float, float]:
    """Return the seconds of CPU that lean enqueues, and lean claims and ends, take on SQLite."""
    connection = driver.connect(str(folder / "lean.db"), isolation_level=None)
    connection.execute("pragma journal_mode = wal")
    connection.executescript(_TABLES.format(key="integer primary key", number="integer"))
    began = time.process_time()
    for _ in range(0, jobs, _BATCH):
        connection.execute("begin immediate")
        connection.executemany(
            "insert into lean_jobs (task, lane, state, priority, run_at, attempt, payload) "
            "values ('t', 'l', 'pending', 0, 1, 0, ?)",
            [(_PAYLOAD,)] * _BATCH,
        )
        connection.execute("commit")
    enqueued = time.process_time()
    for token in range(0, jobs, _BATCH):
        connection.execute("begin immediate")
        claimed = connection.execute(
            "update lean_jobs set state = 'running', token = ?, attempt = attempt + 1 where id in "
            "(select id from lean_jobs where state = 'pending' order by priority, run_at, id limit ?) "
            "returning id, task, payload",
            (token, _BATCH),
        ).fetchall()
        connection.execute("commit")
        connection.execute("begin immediate")
        connection.executemany("insert into lean_runs values (?, 1, 1, 2)", [(row[0],) for row in claimed])
        connection.executemany(
            "update lean_jobs set state = 'completed', token = null, finished_at = 2 where id = ? and token = ?",
            [(row[0], token) for row in claimed],
        )
        connection.execute("commit")
    ended = time.process_time()
    connection.close()
    return enqueued - began, ended - enqueued


def postgres_cost(dsn: str, jobs: int) -> tuple[float, float]:
    """Return the seconds of CPU that the server takes for the same on PostgreSQL."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(_TABLES.format(key="bigint generated always as identity primary key", number="bigint"))
        pid = connection.info.backend_pid
        began = cpu_of(pid)
        for _ in range(0, jobs, _BATCH):
            connection.execute(
                "insert into lean_jobs (task, lane, state, priority, run_at, attempt, payload) "
                "select 't', 'l', 'pending', 0, 1, 0, p from unnest(%s::text[]) as p",
                ([_PAYLOAD] * _BATCH,),
            )
        enqueued = cpu_of(pid)
        for token in range(0, jobs, _BATCH):
            claimed = connection.execute(
                "with ready as (select id from lean_jobs where state = 'pending' order by priority, run_at, id limit %s "
                "for update skip locked) update lean_jobs j set state = 'running', token = %s, attempt = attempt + 1 "
                "from ready where j.id = ready.id returning j.id, j.task, j.payload",
                (_BATCH, token),
            ).fetchall()
            connection.execute(
                "with ended as (update lean_jobs j set state = 'completed', token = null, finished_at = 2 "
                "from unnest(%s::bigint[]) as f (id) where j.id = f.id and j.token = %s returning j.id) "
                "insert into lean_runs select id, 1, 1, 2 from ended",
                ([row[0] for row in claimed], token),
            )
        return enqueued - began, cpu_of(pid) - enqueued


def cpu_of(pid: int) -> float:
    """Return the seconds of CPU that a process has used, to the nanosecond where the kernel tells."""
    return int(Path(f"/proc/{pid}/schedstat").read_text(encoding="ascii").split()[0]) / 1e9
