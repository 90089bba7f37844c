"""A PostgreSQL database as the source or the target of a move."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast

from windlass.store.moving.tables import Table, TableColumn, Values

_TABLES = r"""
    select c.relname, a.attname, format_type(a.atttypid, null),
        coalesce(array_position(i.indkey::smallint[], a.attnum), -1) as place,
        case when a.attidentity <> '' then pg_get_serial_sequence(format('%I.%I', n.nspname, c.relname), a.attname)
            else substring(pg_get_expr(d.adbin, d.adrelid) from $re$^nextval\('(.*)'::regclass\)$$re$) end
    from pg_class c join pg_namespace n on n.oid = c.relnamespace
        join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and a.attgenerated = ''
        left join pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum
        left join pg_index i on i.indrelid = c.oid and i.indisprimary
    where c.relkind = 'r' and c.relname like 'windlass\_%' and pg_table_is_visible(c.oid) order by c.relname, a.attnum
"""
_INSTANT, _BOOLEAN, _JSON = "timestamp with time zone", "boolean", "json"
# An instant crosses as the number it is in the binary format: microseconds, counted from here.
_CENTURY_US = 946_684_800_000_000
_WIRE = {
    _INSTANT: "int8",
    _BOOLEAN: "bool",
    _JSON: "text",
    "bigint": "int8",
    "integer": "int4",
    "double precision": "float8",
    "text": "text",
}
# A row may have a megabyte: this many are in memory at once.
_AT_ONCE = 200
_LOCK_TIMEOUT = "set local lock_timeout = '10s'"


class PostgresSide:
    """The functions of a move on a connection of psycopg."""

    def tables(self, connection: Any) -> dict[str, Table]:
        """Describe every table of ours, from the catalog."""
        found: dict[str, list[tuple[Any, ...]]] = {}
        for row in connection.execute(_TABLES).fetchall():
            found.setdefault(row[0], []).append(row)
        return {name: _table(name, rows) for name, rows in found.items()}

    def lock(self, connection: Any, tables: Iterable[str]) -> None:
        """Keep all others from writing until the transaction ends."""
        connection.execute(_LOCK_TIMEOUT)
        connection.execute(f"lock table {', '.join(tables)} in share mode")

    def rows(self, connection: Any, table: Table, after: Values | None) -> Iterator[Values]:
        """Read rows in the order of their key, beyond a key."""
        key = ", ".join(table.key)
        columns = ", ".join(_read(column) for column in table.columns)
        params = {f"key_{place}": value for place, value in enumerate(after or ())}
        beyond = ", ".join(_key(table, place) for place in range(len(table.key)))
        where = "" if after is None else f" where ({key}) > ({beyond})"
        with connection.cursor(name="windlass_moving") as cursor:
            cursor.itersize = _AT_ONCE
            sql = f"select {columns} from {table.name}{where} order by {key}"  # noqa: S608 - names from the catalog
            cursor.execute(sql, params, binary=True)
            yield from cursor

    def write(self, connection: Any, table: Table, rows: Sequence[Values], planned: Iterable[str]) -> None:
        """Write rows without the triggers that write into other tables of the plan."""
        del planned
        # Only for this transaction, whose lock keeps others away until they are back.
        connection.execute(f"alter table {table.name} disable trigger user")
        instants = [place for place, column in enumerate(table.columns) if column.type == _INSTANT]
        booleans = [place for place, column in enumerate(table.columns) if column.type == _BOOLEAN]
        sql = f"copy {table.name} ({', '.join(table.names)}) from stdin (format binary)"
        with connection.cursor() as cursor, cursor.copy(sql) as copy:
            copy.set_types([_WIRE[column.type] for column in table.columns])
            for row in rows:
                copy.write_row(_native(row, instants, booleans))
        connection.execute(f"alter table {table.name} enable trigger user")

    def ask(self, connection: Any, sql: str) -> Values:
        """Return the one row of a plain query."""
        return cast("Values", connection.execute(sql).fetchone())

    def read(self, column: TableColumn) -> str:
        """Write the expression for a column in the form that SQLite keeps."""
        return _read(column)

    def last_number(self, connection: Any, table: Table) -> int:
        """Return the highest number that the table's sequence has given."""
        [last] = connection.execute("select pg_sequence_last_value(%s::regclass)", [table.sequence]).fetchone()
        return int(last or 0)

    def set_last_number(self, connection: Any, table: Table, number: int) -> None:
        """Let the table's sequence go on after a number."""
        if number:
            connection.execute("select setval(%s::regclass, %s)", [table.sequence, number])

    def settle(self, connection: Any) -> None:
        """Let the planner see what the tables hold."""
        connection.execute(f"analyze {', '.join(self.tables(connection))}")


def _table(name: str, rows: Sequence[tuple[Any, ...]]) -> Table:
    columns = tuple(TableColumn(column, kind) for _, column, kind, _, _ in rows)
    key = tuple(column for _, column, _, place, _ in sorted(rows, key=lambda one: one[3]) if place >= 0)
    return Table(name, columns, key, next((one[4] for one in rows if one[4]), None))


def _read(column: TableColumn) -> str:
    match column.type:
        case "timestamp with time zone":
            return f"(extract(epoch from {column.name}) * 1000000)::bigint"
        case "boolean":
            return f"{column.name}::integer"
        case "json":
            return f"{column.name}::text"
    return column.name


def _key(table: Table, place: int) -> str:
    name = f"%(key_{place})s"
    if table.type_of(table.key[place]) != _INSTANT:
        return name
    # In two parts, so that nothing is rounded.
    seconds, rest = f"({name}::bigint / 1000000)", f"({name}::bigint %% 1000000)"
    return f"timestamptz 'epoch' + {seconds} * interval '1 second' + {rest} * interval '1 microsecond'"


def _native(row: Values, instants: Sequence[int], booleans: Sequence[int]) -> Sequence[Any]:
    values: list[Any] = list(row)
    for place in instants:
        if values[place] is not None:
            values[place] -= _CENTURY_US
    for place in booleans:
        if values[place] is not None:
            values[place] = bool(values[place])
    return values
