"""The tables of a database as its own catalog describes them, and which of them a move copies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

Value = str | int | float | None
Values = Sequence[Value]
"""A row in the form that SQLite keeps: instants as microseconds since 1970 (UTC), truth values as 0 and 1, JSON as its text."""

OF_EACH_DATABASE = frozenset({"windlass_schema", "windlass_gates"})
"""What each database has of its own: which migrations it had, and the name that distinguishes it from others."""
SUMMED = {"windlass_run_deltas": ("runs", "wait_ms", "duration_ms")}
"""Tables whose rows PostgreSQL appends and SQLite adds up in place; rows of one key become one."""


class TableColumn(NamedTuple):
    """A column that is stored, and its type by the database's own name."""

    name: str
    type: str


class Table(NamedTuple):
    """A table with its key, and the sequence that numbers its rows."""

    name: str
    columns: tuple[TableColumn, ...]
    key: tuple[str, ...]
    sequence: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of its columns."""
        return tuple(column.name for column in self.columns)

    def type_of(self, name: str) -> str:
        """Return the type of a column."""
        return next(column.type for column in self.columns if column.name == name)

    def only(self, names: Iterable[str]) -> Table:
        """Return the table with these columns, in this order."""
        return self._replace(columns=tuple(TableColumn(name, self.type_of(name)) for name in names))


class Side(Protocol):
    """What a move asks of a database; each function runs on a connection that is inside a transaction."""

    def tables(self, connection: Any) -> dict[str, Table]:
        """Describe every table of ours, from the catalog."""
        ...

    def lock(self, connection: Any, tables: Iterable[str]) -> None:
        """Keep all others from writing until the transaction ends."""
        ...

    def rows(self, connection: Any, table: Table, after: Values | None) -> Iterator[Values]:
        """Read rows in the order of their key, beyond a key."""
        ...

    def write(self, connection: Any, table: Table, rows: Sequence[Values], planned: Iterable[str]) -> None:
        """Write rows without the triggers that write into other tables of the plan."""
        ...

    def ask(self, connection: Any, sql: str) -> Values:
        """Return the one row of a plain query."""
        ...

    def read(self, column: TableColumn) -> str:
        """Write the expression for a column in the form that SQLite keeps."""
        ...

    def last_number(self, connection: Any, table: Table) -> int:
        """Return the highest number that the table's sequence has given."""
        ...

    def set_last_number(self, connection: Any, table: Table, number: int) -> None:
        """Let the table's sequence go on after a number."""
        ...

    def settle(self, connection: Any) -> None:
        """Do what helps a database that was filled at once."""
        ...


def plan(source: Mapping[str, Table], target: Mapping[str, Table]) -> dict[str, tuple[Table, Table]]:
    """Pair every table that is to be copied: all that both have but what each has of its own.

    Of the target's columns those that the source has too, in one order; behind them, what the source's key has beside them.
    """
    paired = {}
    for name in sorted(source.keys() & target.keys() - OF_EACH_DATABASE):
        theirs, ours = source[name], target[name]
        both = [one for one in theirs.names if one in ours.names]
        paired[name] = theirs.only([*both, *(one for one in theirs.key if one not in both)]), ours.only(both)
    return paired


MOST_ROWS = 20_000
_MOST_TEXT = 8 * 1024 * 1024


def batched(rows: Iterable[Values], most_rows: int) -> Iterator[list[Values]]:
    """Gather rows until there are many, or they hold much text."""
    batch: list[Values] = []
    size = 0
    for row in rows:
        batch.append(row)
        size += sum([len(value) for value in row if type(value) is str])
        if len(batch) >= most_rows or size >= _MOST_TEXT:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
