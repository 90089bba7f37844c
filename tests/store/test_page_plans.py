"""Pages and frontiers are read by index, however many there are."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.support.postgres_server import PostgresServer
from tests.support.stores import fresh_postgres, migrate_sqlite
from windlass.store.queries import PARAMETER, queries
from windlass.store.sqlite_library import sqlite_driver as driver

INDEXES = {
    "search_pages": "windlass_pages_search",
    "count_found_pages": "windlass_pages_search",
    "list_pages": "windlass_pages_pkey",
    "list_source_pages": "windlass_pages_sources",
    "count_source_pages": "windlass_pages_sources",
    "get_page": "windlass_pages_pkey",
    "known_page": "windlass_pages_keys",
    "touch_page": "windlass_pages_keys",
    "delete_page": "windlass_pages_keys",
    "delete_pages": "windlass_pages_sources",
    "next_address": "windlass_frontier_open",
    "close_address": "windlass_frontier_keys",
    "extend_frontier": "windlass_frontier_keys",
    "clear_frontier": "windlass_frontier",
}
PARAMS: dict[str, Any] = {
    "words": '["w7","word*"]',
    "source_id": "s7",
    "key": "k7",
    "id": 7,
    "job_id": 7,
    "after": 10,
    "limit": 20,
    "most": 100,
    "etag": "e",
    "last_modified": "m",
    "depth": 1,
    "last": 1,
    "room": 5,
    "links": '[{"key":"a","url":"u"}]',
    "now": None,
}
FILL = """
insert into windlass_pages (source_id, key, url, title, text, words, links, digest, status, fetched_at, changed_at, created_at)
select 's' || n % 100, 'k' || n, 'u', 't', repeat('text ', 20), 'word' || n % 7 || ' w' || n % 2000, '[]', 'd', 200,
    now(), now(), now()
from generate_series(1, 6000) as n;
insert into windlass_frontier (job_id, number, key, url, depth, is_open)
select n % 60, n, 'k' || n, 'u', 1, n % 10 = 0 from generate_series(1, 6000) as n;
"""


@pytest.mark.parametrize("is_analysed", [True, False])
def test_postgres_reads_by_index(postgres_server: PostgresServer, *, is_analysed: bool) -> None:
    with fresh_postgres(postgres_server) as dsn, psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("alter table windlass_pages set (autovacuum_enabled = off)")
        connection.execute(FILL)
        if is_analysed:
            connection.execute("vacuum analyze")
        for name, index in INDEXES.items():
            plan = _plan(connection, name)
            assert "Seq Scan on windlass" not in plan, (name, plan)
            # Before it has counted anything, the planner may prefer another index.
            assert index in plan or not is_analysed, (name, plan)


def _plan(connection: psycopg.Connection[Any], name: str) -> str:
    [statement] = queries("postgres").statements(name)
    text = PARAMETER.sub(r"%(\1)s", statement.replace("%", "%%"))
    with connection.transaction(force_rollback=True):
        return "\n".join(line for (line,) in connection.execute(f"explain (analyze, costs off, timing off) {text}", PARAMS))


def test_sqlite_reads_by_index(tmp_path: Path) -> None:
    migrate_sqlite(tmp_path / "plan.db")
    connection = driver.connect(str(tmp_path / "plan.db"))
    for name in INDEXES:
        for statement in queries("sqlite").statements(name):
            wanted = dict.fromkeys(PARAMETER.findall(statement), "[]") | {"after": 1, "limit": 1}
            lines = [row[3] for row in connection.execute(f"explain query plan {statement}", wanted)]
            scans = [line for line in lines if re.match(r"SCAN (windlass_\w+|f|p)\b", line) and "VIRTUAL TABLE INDEX" not in line]
            assert scans == [], (name, lines)
            if "words match" in statement:
                # M: the words are looked up in the index; > : it begins after the id.
                assert any(re.search(r"SCAN windlass_pages_words VIRTUAL TABLE INDEX \d+:\S*M", line) for line in lines), lines
    connection.close()
