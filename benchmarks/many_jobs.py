"""Fills a database with many jobs, quickly: not through the verbs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from tests.support.postgres_server import running_postgres
from tests.support.stores import fresh_postgres, migrate_sqlite
from windlass.store.sqlite_library import sqlite_driver as driver

CHOICES = ("sqlite", "postgres", "both")
"""What `--database` may be."""
_KINDS = """
    case when n % 100 < 90 then 'completed' when n % 100 < 93 then 'failed' when n % 100 < 95 then 'scheduled' else 'pending' end
"""
_FILL = {
    "sqlite": """
        insert into windlass_jobs
            (task, lane, state, wait_reason, run_at, created_at, updated_at, closed_at, attempt, executions, last_error)
        with recursive
            n (n) as (select 1 union all select n + 1 from n where n < {rows}),
            kinds (n, state, at) as (
                select n, {kinds}, cast(unixepoch('subsec') * 1000000 as integer) - ({rows} - n) * 5000 from n
            )
        select 'task-' || (n % 20), 'lane-' || (n / 20 % 3), state,
            case state when 'pending' then 'new' when 'scheduled' then 'delay' end,
            at + case state when 'scheduled' then 90000000000 else 0 end, at, at,
            case when state in ('completed', 'failed') then at end, 1, 1,
            case state when 'failed' then 'broken ' || (n % 7) end
        from kinds;
        insert into windlass_bodies (job_id, payload) select id, '{{"number": 7}}' from windlass_jobs where true""",
    "postgres": """
        with doc as (
            insert into windlass_jobs
                (task, lane, state, wait_reason, run_at, created_at, updated_at, closed_at, attempt, executions, last_error)
            select 'task-' || (n % 20), 'lane-' || (n / 20 % 3), state,
                case state when 'pending' then 'new' when 'scheduled' then 'delay' end,
                at + case state when 'scheduled' then interval '1 day' else interval '0' end, at, at,
                case when state in ('completed', 'failed') then at end, 1, 1,
                case state when 'failed' then 'broken ' || (n % 7) end
            from (
                select n, {kinds} as state, now() - ({rows} - n) * interval '5 ms' as at from generate_series(1, {rows}) as n
            ) as kinds
            returning id
        ) insert into windlass_bodies (job_id, payload) select id, '{{"number": 7}}' from doc""",
}


@contextmanager
def databases(chosen: str, folder: Path) -> Iterator[dict[str, str]]:
    """Make empty databases of the kinds that `--database` names; gives the URL of each by its name."""
    urls = {}
    if chosen != "postgres":
        migrate_sqlite(folder / "jobs.db")
        urls["SQLite"] = f"sqlite:///{folder / 'jobs.db'}"
    if chosen == "sqlite":
        yield urls
        return
    with running_postgres() as server, fresh_postgres(server) as dsn:
        yield urls | {"PostgreSQL": dsn}


def fill(name: str, url: str, rows: int) -> None:
    """Put jobs into the tables and print how long it took."""
    began = time.monotonic()
    is_sqlite = url.startswith("sqlite")
    text = _FILL["sqlite" if is_sqlite else "postgres"].format(rows=rows, kinds=_KINDS)
    if is_sqlite:
        connection = driver.connect(url.removeprefix("sqlite:///"), isolation_level=None)
        connection.execute("begin immediate")
        for statement in text.split(";\n"):
            connection.execute(statement)
        connection.execute("commit")
        connection.execute("analyze")
        connection.close()
    else:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(text)
            connection.execute("vacuum analyze")
    print(f"{name}: {rows:,} jobs, filled in {time.monotonic() - began:.0f} s", flush=True)
