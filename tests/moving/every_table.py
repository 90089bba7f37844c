"""Rows in every table of a SQLite database, found by its catalog, and what is in all of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from windlass.store.sqlite_library import sqlite_driver as driver

OF_EACH_DATABASE = {"windlass_schema", "windlass_gates"}
_BASE_US = 1_780_000_000_000_000
# What the constraints of a table ask for beyond the kind of a column.
_CHOSEN: dict[str, dict[str, Any]] = {
    "windlass_jobs": {"state": "paused", "wait_reason": "operator", "unique_scope": "active", "cadence": '{"cadence":"1h"}'}
    | dict.fromkeys(("token", "worker", "pull_id", "claimed_at", "lease_expires_at", "closed_at", "rerun_at", "rerun_slot_at"))
    | {"spawn": 0, "held": 0, "stop_requested": 0, "unique_key": "key", "unique_slot": "key"},
    "windlass_executions": {"status": "failed", "reason": "error"},
    "windlass_dead_letters": {"closed_reason": "retried"},
    "windlass_breakers": {"state": "open"},
    "windlass_tokens": {"role": "viewer"},
    "windlass_feeds": {"websub_state": "active"},
    "windlass_canaries": {"state": "done"},
    "windlass_contact": {"id": 1, "touched_at": _BASE_US},
}
_ODD = "żółw \\ \t\n'\"{},Ω\U0001f600"


@contextmanager
def opened(path: Path) -> Iterator[Any]:
    connection = driver.connect(str(path))
    try:
        yield connection
        connection.commit()
    finally:
        connection.close()


def tables(connection: Any) -> list[str]:
    """Name the tables that keep something of their own: not those that keep the words of pages once more."""
    found = connection.execute("select name from sqlite_master where type = 'table' and name like 'windlass\\_%' escape '\\'")
    return sorted(name for (name,) in found if not name.startswith("windlass_pages_words"))


def columns(connection: Any, table: str) -> list[tuple[str, str, int]]:
    found = connection.execute("select name, type, pk from pragma_table_info(?)", (table,)).fetchall()
    return [(name, kind.lower(), place) for name, kind, place in found]


Kinds = Mapping[tuple[str, str], str]
"""What PostgreSQL calls the type of a column, by table and column."""


def fill(path: Path, kinds: Kinds) -> None:
    """Write two rows into every table, with a value in nearly every column."""
    with opened(path) as connection:
        triggers = connection.execute("select name, sql from sqlite_master where type = 'trigger' and sql like '%insert on%'")
        counting = [(name, sql) for name, sql in triggers.fetchall() if not name.startswith("windlass_pages")]
        for name, _ in counting:
            connection.execute(f"drop trigger {name}")
        for table in tables(connection):
            if table in OF_EACH_DATABASE:
                continue
            for number in (1,) if table == "windlass_contact" else (1, 2):
                found = columns(connection, table)
                row = {name: _value(table, name, kinds.get((table, name), kind), number) for name, kind, _ in found}
                names, places = ", ".join(row), ", ".join("?" * len(row))
                connection.execute(f"insert into {table} ({names}) values ({places})", tuple(row.values()))
        for _, sql in counting:
            connection.execute(sql)


def _value(table: str, name: str, kind: str, number: int) -> Any:
    if name in _CHOSEN.get(table, {}):
        chosen = _CHOSEN[table][name]
        return f"{chosen}{number}" if name in {"unique_key", "unique_slot"} else chosen
    values: dict[str, Any] = {
        "json": f'{{ "n" : {number}.0, "text":"{chr(0x17C)}"}}',
        # Truth is in the last digit: an instant that went through a float would lose it.
        "timestamp with time zone": _BASE_US + number * 7_000_001,
        "boolean": number % 2,
        "text": f"{number}{_ODD}",
        "real": number + 0.1,
        "double precision": number + 0.1,
    }
    return values.get(kind, number)


def contents(path: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Read every row of every table."""
    with opened(path) as connection:
        return {table: _rows(connection, table) for table in tables(connection) if table not in OF_EACH_DATABASE}


def _rows(connection: Any, table: str) -> list[tuple[Any, ...]]:
    names = ", ".join(name for name, _, _ in columns(connection, table))
    return sorted(connection.execute(f"select {names} from {table}"), key=repr)
