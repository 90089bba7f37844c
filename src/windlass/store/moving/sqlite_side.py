"""A SQLite file as the source or the target of a move."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from windlass.store.moving.tables import SUMMED, Table, TableColumn, Values

# Ours by their prefix; virtual tables and what they keep are made anew by triggers.
_TABLES = r"""
    select t.name, instr(lower(s.sql), 'autoincrement') > 0 from pragma_table_list t join sqlite_master s on s.name = t.name
    where t.schema = 'main' and t.type = 'table' and t.name like 'windlass\_%' escape '\' order by t.name
"""
_COLUMNS = "select name, lower(type), pk from pragma_table_xinfo(?) where hidden = 0 order by cid"
_TRIGGERS = "select name, sql from sqlite_master where type = 'trigger' and tbl_name = ?"
# The indexes of a large table do not fit into what is enough while work goes on.
_CACHE = "pragma cache_size = -131072"


class SqliteSide:
    """The functions of a move on a connection of SQLite's driver."""

    def tables(self, connection: Any) -> dict[str, Table]:
        """Describe every table of ours, from the catalog."""
        return {name: _table(connection, name, is_numbered=is_numbered) for name, is_numbered in _all(connection, _TABLES)}

    def lock(self, connection: Any, tables: Iterable[str]) -> None:
        """Nothing is left to lock: a writing transaction has the file to itself."""

    def rows(self, connection: Any, table: Table, after: Values | None) -> Iterator[Values]:
        """Read rows in the order of their key, beyond a key."""
        key = ", ".join(table.key)
        beyond = "" if after is None else f" where ({key}) > ({', '.join('?' * len(table.key))})"
        sql = f"select {', '.join(table.names)} from {table.name}{beyond} order by {key}"  # noqa: S608 - names from the catalog
        yield from _cursor(connection).execute(sql, tuple(after or ()))

    def write(self, connection: Any, table: Table, rows: Sequence[Values], planned: Iterable[str]) -> None:
        """Write rows without the triggers that write into other tables of the plan."""
        counting = [(name, sql) for name, sql in _all(connection, _TRIGGERS, table.name) if _writes_into(sql, planned)]
        for name, _ in counting:
            connection.execute(f"drop trigger {name}")
        connection.execute(_CACHE)
        connection.executemany(_insert(table), rows)
        for _, sql in counting:
            connection.execute(sql)

    def ask(self, connection: Any, sql: str) -> Values:
        """Return the one row of a plain query."""
        [row] = _all(connection, sql)
        return row

    def read(self, column: TableColumn) -> str:
        """Write the expression for a column, which is kept in that form."""
        return column.name

    def last_number(self, connection: Any, table: Table) -> int:
        """Return the highest number that the table's sequence has given."""
        found = _all(connection, "select seq from sqlite_sequence where name = ?", table.name)
        return int(found[0][0]) if found else 0

    def set_last_number(self, connection: Any, table: Table, number: int) -> None:
        """Let the table's sequence go on after a number."""
        connection.execute("delete from sqlite_sequence where name = ?", (table.name,))
        connection.execute("insert into sqlite_sequence (name, seq) values (?, ?)", (table.name, number))

    def settle(self, connection: Any) -> None:
        """Nothing helps: our statements name their indexes, and nothing else is planned by statistics."""


def _cursor(connection: Any) -> Any:
    cursor = connection.cursor()
    cursor.row_factory = None
    return cursor


def _all(connection: Any, sql: str, *values: str) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = _cursor(connection).execute(sql, values).fetchall()
    return found


def _table(connection: Any, name: str, *, is_numbered: bool) -> Table:
    found = _all(connection, _COLUMNS, name)
    key = tuple(column for column, _, place in sorted(found, key=lambda one: one[2]) if place)
    columns = tuple(TableColumn(column, kind) for column, kind, _ in found)
    return Table(name, columns, key, name if is_numbered else None)


def _writes_into(trigger: str, planned: Iterable[str]) -> bool:
    text = trigger.lower()
    return "after insert" in text and any(f"insert into {name} " in text for name in planned)


def _insert(table: Table) -> str:
    names, places = ", ".join(table.names), ", ".join("?" * len(table.names))
    sql = f"insert into {table.name} ({names}) values ({places})"  # noqa: S608 - names from the catalog
    if table.name in SUMMED:
        sums = ", ".join(f"{name} = {name} + excluded.{name}" for name in SUMMED[table.name])
        sql += f" on conflict do update set {sums}"
    return sql
