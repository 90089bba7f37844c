"""The lean limit: a table of ten columns and one index, claimed and finished 200 at a time, with none of a queue's rules."""

from __future__ import annotations

import json
import signal
import sys
import time
from typing import Any

import psycopg
from program import ADDRESS, FILLER, VARIANT, About, Peer, main, note

from windlass import sqlite_driver

BATCH = 200
IS_POSTGRES = VARIANT == "postgres"
TABLE = f"""
    create table lean (
        id {"bigint generated always as identity" if IS_POSTGRES else "integer"} primary key,
        task text not null, lane text not null, state text not null, priority integer not null, run_at bigint not null,
        payload text not null, attempt integer not null, worker text, finished_at bigint
    )"""
INDEX = "create index lean_waiting on lean (priority, id) where state = 'pending'"
INSERT = (
    "insert into lean (task, lane, state, priority, run_at, payload, attempt) values ('work', 'default', 'pending', 0, 0, {}, 0)"
)
CLAIM = """
    update lean set state = 'running', attempt = attempt + 1, worker = 'w'
    where id in (select id from lean where state = 'pending' order by priority, id limit {batch} {locked})
    returning id, payload"""


class Connection:
    """One plain connection to either database."""

    def __init__(self) -> None:
        """Connect; every statement is a transaction of its own."""
        if IS_POSTGRES:
            self._connection: Any = psycopg.connect(ADDRESS, autocommit=True, prepare_threshold=1)
        else:
            path = ADDRESS.removeprefix("sqlite:///")
            self._connection = sqlite_driver.connect(path, isolation_level=None, timeout=60, cached_statements=512)
            for pragma in ("journal_mode = wal", "synchronous = full", "cache_size = -65536"):
                self._connection.execute(f"pragma {pragma}").fetchall()

    def ask(self, text: str, *values: Any) -> list[Any]:
        """Run a statement; returns its rows."""
        cursor = self._connection.execute(text, values)
        return list(cursor.fetchall()) if cursor.description else []


class Lean(Peer):
    """A table, and nothing else."""

    async def prepare(self) -> None:
        """Make the table."""
        connection = Connection()
        connection.ask(TABLE)
        connection.ask(INDEX)

    async def open(self) -> None:
        """Connect."""
        self._connection = Connection()

    async def enqueue(self, number: int) -> None:
        """Insert a row."""
        self._connection.ask(INSERT.format("%s" if IS_POSTGRES else "?"), json.dumps({"number": number, "filler": FILLER}))

    async def enqueue_many(self, numbers: range) -> None:
        """Insert rows from one document."""
        documents = [json.dumps({"number": number, "filler": FILLER}) for number in numbers]
        source = "unnest(%s::text[]) as value" if IS_POSTGRES else "json_each(?)"
        self._connection.ask(
            "insert into lean (task, lane, state, priority, run_at, payload, attempt)"
            f" select 'work', 'default', 'pending', 0, 0, value, 0 from {source}",
            documents if IS_POSTGRES else json.dumps(documents),
        )

    def work(self) -> None:
        """Claim and finish until a signal ends it."""
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        connection = Connection()
        claim = CLAIM.format(batch=BATCH, locked="for update skip locked" if IS_POSTGRES else "")
        which = "= any(%s)" if IS_POSTGRES else "in (select value from json_each(?))"
        while True:
            rows = connection.ask(claim)
            for _, payload in rows:
                note(json.loads(payload)["number"])
            if rows:
                ids = [row[0] for row in rows]
                connection.ask(
                    f"update lean set state = 'done', finished_at = 1 where id {which}", ids if IS_POSTGRES else json.dumps(ids)
                )
            else:
                time.sleep(0.01)


if __name__ == "__main__":
    main(
        Lean(),
        About(
            title="lean limit, PostgreSQL" if IS_POSTGRES else "lean limit, SQLite",
            package="psycopg" if IS_POSTGRES else "",
            tuning=f"ten columns, one index, {BATCH} claimed and finished at a time over one blocking connection, pipeline off",
            history="the row stays in the table",
            crash="none: no lease, no retry, no history, no order between lanes; every commit is synced",
            left="select count(*) from (select 1 from lean where state <> 'done' limit 1) as waiting",
            ended="select count(*) from lean where state = 'done'",
            is_limit=True,
        ),
    )
