"""A database that is being filled: how far each table has come is written with the rows themselves."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from windlass.errors import MoveRefused, StoreRefused
from windlass.store import migrate
from windlass.store.migrate import Scriptable
from windlass.store.moving.postgres_side import PostgresSide
from windlass.store.moving.sqlite_side import SqliteSide
from windlass.store.moving.tables import OF_EACH_DATABASE, Side, Table, Values

T = TypeVar("T")

_PROGRESS = "windlass_moving"
_MAKE = f"create table {_PROGRESS} (name text primary key, after text not null, copied bigint not null)"
_IS_THERE = {
    "sqlite": f"select count(*) from sqlite_master where type = 'table' and name = '{_PROGRESS}'",  # noqa: S608 - our own name
    "postgres": f"select (to_regclass('{_PROGRESS}') is not null)::integer",
}
_READ = f"select name, after, copied from {_PROGRESS}"  # noqa: S608 - our own name
_ORIGIN = ""
ITSELF = "the database itself"
"""What the name that distinguishes a database from others is called among the marks of its tables."""


class TableProgress(NamedTuple):
    """How far a table has come: its last key, and how many rows were read for it."""

    after: Values | None = None
    copied: int = 0


class Filling:
    """Fills an empty database batch by batch; what was written stays when the process is killed."""

    def __init__(self, database: Scriptable) -> None:
        """Fill `database`."""
        self._database = database
        self._side = SIDES[database.dialect]
        self.is_resumed = False
        self.tables: dict[str, Table] = {}
        self._progress: dict[str, TableProgress] = {}

    def begin(self, origin: Mapping[str, str]) -> None:
        """Make the tables, or find them as an earlier attempt from the same origin has left them.

        Raises MoveRefused where there is anything else.
        """
        self.is_resumed = bool(self.ask(_IS_THERE[self._database.dialect])[0])
        if not self.is_resumed:
            migrate.up(self._database)
        self.tables = self._run(self._side.tables)
        self.tables.pop(_PROGRESS, None)
        if self.is_resumed:
            self._resume(origin)
        else:
            self._run(lambda connection: self._start(connection, origin))

    def _start(self, connection: Any, origin: Mapping[str, str]) -> None:
        taken = [name for name in sorted(self.tables.keys() - OF_EACH_DATABASE) if _has_rows(connection, name)]
        if taken:
            raise MoveRefused(f"the target is not empty ({', '.join(taken)} have rows); name a new file or a new, empty database")
        # Waits no longer than a moment: source and target may be one database under two names.
        self._side.lock(connection, ["windlass_schema"])
        connection.execute(_MAKE)
        self._note(connection, _ORIGIN, TableProgress((json.dumps(origin),)))
        connection.execute(
            "insert into windlass_schema (version, name, checksum, applied_at) "  # noqa: S608 - a number of ours
            f"values ({migrate.UNFINISHED}, 'unfinished move', '', '')"
        )

    def _resume(self, origin: Mapping[str, str]) -> None:
        found: list[Any] = self._run(lambda connection: connection.execute(_READ).fetchall())
        progress = {name: TableProgress(json.loads(after), copied) for name, after, copied in found}
        [told] = progress.pop(_ORIGIN).after or ("{}",)
        before = json.loads(str(told))
        if changed := sorted(name for name in before.keys() | origin.keys() if before.get(name) != origin.get(name)):
            raise MoveRefused(
                f"what is moved has changed since the move into this target began ({', '.join(changed)}); "
                "stop what writes there, and begin again with a new, empty target"
            )
        self._progress = progress

    def progress_of(self, table: str) -> TableProgress:
        """Return how far a table has come."""
        return self._progress.get(table, TableProgress())

    def add(self, table: Table, rows: Sequence[Values], planned: Iterable[str], progress: TableProgress) -> None:
        """Write rows, and how far they lead, in one transaction."""

        def work(connection: Any) -> None:
            self._side.write(connection, table, rows, planned)
            self._note(connection, table.name, progress)

        try:
            self._run(work)
        except StoreRefused as error:
            names = table.names
            places = [names.index(name) for name in table.key if name in names]
            first, last = ([row[place] for place in places] for row in (rows[0], rows[-1]))
            raise StoreRefused(f"{table.name}, from {first} to {last}: {error}") from error

    def _note(self, connection: Any, name: str, progress: TableProgress) -> None:
        mark = "?" if self._database.dialect == "sqlite" else "%s"
        connection.execute(
            f"insert into {_PROGRESS} (name, after, copied) values ({mark}, {mark}, {mark}) "  # noqa: S608 - our own name
            "on conflict (name) do update set after = excluded.after, copied = excluded.copied",
            (name, json.dumps(progress.after, ensure_ascii=False), progress.copied),
        )

    def ask(self, sql: str) -> Values:
        """Return the one row of a plain query."""
        return self._run(lambda connection: self._side.ask(connection, sql))

    def set_last_numbers(self, numbers: Mapping[str, int]) -> None:
        """Let every table go on after the last number it has given, also of rows that are gone."""

        def work(connection: Any) -> None:
            for name, number in numbers.items():
                if self.tables[name].sequence is not None:
                    self._side.set_last_number(connection, self.tables[name], number)
            self._side.settle(connection)

        self._run(work)

    def end(self) -> None:
        """Let processes work with the database from now on."""

        def work(connection: Any) -> None:
            connection.execute(f"drop table {_PROGRESS}")
            connection.execute(f"delete from windlass_schema where version = {migrate.UNFINISHED}")  # noqa: S608 - a number of ours

        self._run(work)

    def _run(self, work: Callable[[Any], T]) -> T:
        return self._database.run_script(work)


def _has_rows(connection: Any, table: str) -> bool:
    return connection.execute(f"select 1 from {table} limit 1").fetchone() is not None  # noqa: S608 - a name from the catalog


SIDES: dict[str, Side] = {"sqlite": SqliteSide(), "postgres": PostgresSide()}
