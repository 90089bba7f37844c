"""Copies a database into an empty one while no writer is let in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from windlass.errors import MoveRefused
from windlass.store import migrate
from windlass.store.migrate import Scriptable
from windlass.store.moving.filling import ITSELF, SIDES, Filling, TableProgress
from windlass.store.moving.tables import MOST_ROWS, OF_EACH_DATABASE, SUMMED, Table, TableColumn, Values, batched, plan

Notice = Callable[[int, int, str], None]
"""Takes how many rows are copied, of how many, and of which table now."""

_NOW = {
    "sqlite": "unixepoch() * 1000000",
    "postgres": "(extract(epoch from statement_timestamp()) * 1000000)::bigint",
}
_LIVE_WORKERS = "select count(*) from windlass_workers where stopped_at is null"
_LEASED_JOBS = "select count(*) from windlass_jobs where token is not null"
_SILENT_US = 60_000_000
_CLOCKS = frozenset({"updated_at", "seen_at", "last_run_at", "touched_at"})
"""Columns that move on when a row is changed."""


class RowSource(Protocol):
    """Where the rows come from."""

    @property
    def tables(self) -> Mapping[str, Table]:
        """The tables that are there."""
        ...

    def marks(self) -> dict[str, str]:
        """Return what distinguishes this state from any other, by table."""
        ...

    def rows(self, table: Table, progress: TableProgress) -> Iterator[Values]:
        """Read the rows that are not copied yet, in an order that is always the same."""
        ...

    def count(self, table: str) -> int:
        """Count rows."""
        ...

    def measure(self, table: str) -> int:
        """Count what must arrive."""
        ...

    def last_number(self, table: Table) -> int:
        """Return the highest number that the table has given."""
        ...


class MoveResult(NamedTuple):
    """What a move has done: the rows of each table there, tables that the target does not have, and its last state."""

    tables: Mapping[str, int]
    left_out: Sequence[str]
    is_resumed: bool

    @property
    def rows(self) -> int:
        """How many rows there are in all."""
        return sum(self.tables.values())


class TableReader:
    """A database that is read while no writer is let in."""

    def __init__(self, connection: Any, dialect: str) -> None:
        """Read on a connection that is inside a transaction."""
        self._connection, self._side, self._now = connection, SIDES[dialect], _NOW[dialect]
        self.tables = self._side.tables(connection)
        self._side.lock(connection, self.tables)

    def check_idle(self) -> None:
        """Raise MoveRefused while a process works with this database, or jobs are leased."""
        seen = self._read("windlass_workers", "seen_at")
        if alive := self._number(f"{_LIVE_WORKERS} and {seen} > {self._now} - {_SILENT_US}"):
            raise MoveRefused(
                f"{alive} processes work with this database (`windlass workers --online` names them); stop them, or add --force"
            )
        expires = self._read("windlass_jobs", "lease_expires_at")
        if leased := self._number(f"{_LEASED_JOBS} and {expires} > {self._now}"):
            raise MoveRefused(f"{leased} jobs are leased (`windlass jobs --state running`); let them end, or add --force")

    def marks(self) -> dict[str, str]:
        """Return what distinguishes this state of this database from any other, by table."""
        [identity] = self._ask("select database_id from windlass_gates")
        marks = {name: self._mark(table) for name, table in self.tables.items() if name not in OF_EACH_DATABASE}
        return {ITSELF: str(identity), **marks}

    def _mark(self, table: Table) -> str:
        newest = [self._side.read(TableColumn(f"max({one.name})", one.type)) for one in table.columns if one.name in _CLOCKS]
        found = self._ask(f"select {', '.join(['count(*)', *newest])} from {table.name}")  # noqa: S608 - names from the catalog
        return " ".join(map(str, (*found, self.last_number(table))))

    def last_number(self, table: Table) -> int:
        """Return the highest number that the table has given."""
        return 0 if table.sequence is None else self._side.last_number(self._connection, table)

    def rows(self, table: Table, progress: TableProgress) -> Iterator[Values]:
        """Read the rows beyond the last key, in the order of their key."""
        return self._side.rows(self._connection, table, progress.after)

    def measure(self, table: str) -> int:
        """Count what must arrive."""
        return self._number(measure(table))

    def count(self, table: str) -> int:
        """Count rows."""
        return self._number(f"select count(*) from {table}")  # noqa: S608 - a name from the catalog

    def _read(self, table: str, column: str) -> str:
        return self._side.read(TableColumn(column, self.tables[table].type_of(column)))

    def _number(self, sql: str) -> int:
        [number] = self._ask(sql)
        return int(number or 0)

    def _ask(self, sql: str) -> Values:
        return self._side.ask(self._connection, sql)


def measure(table: str) -> str:
    """Write the query that counts what must be the same on both sides."""
    counted = f"coalesce(sum({SUMMED[table][0]}), 0)" if table in SUMMED else "count(*)"
    return f"select {counted} from {table}"  # noqa: S608 - a name from the catalog


def move(
    source: Scriptable, target: Scriptable, notice: Notice, *, is_forced: bool = False, most_rows: int = MOST_ROWS
) -> MoveResult:
    """Copy everything, or what an earlier attempt has left; no process works with the target before `end_move`.

    Writers of the source wait until this has ended. Raises MoveRefused.
    """
    if missing := [one.name for one in migrate.status(source) if not one.is_applied]:
        raise MoveRefused(f"the source lacks migrations ({', '.join(missing)}); run `windlass migrate` there first")

    def work(connection: Any) -> MoveResult:
        reading = TableReader(connection, source.dialect)
        if not is_forced:
            reading.check_idle()
        return fill(target, reading, notice, most_rows)

    return source.run_script(work)


def end_move(target: Scriptable) -> None:
    """Let processes work with the target from now on."""
    Filling(target).end()


def fill(target: Scriptable, origin: RowSource, notice: Notice, most_rows: int = MOST_ROWS) -> MoveResult:
    """Copy into an empty database what is not there yet, and compare the counts; raises MoveRefused."""
    filling = Filling(target)
    filling.begin(origin.marks())
    planned = plan(origin.tables, filling.tables)
    total = sum(origin.count(name) for name in planned)
    done = sum(filling.progress_of(name).copied for name in planned)
    for name, (theirs, ours) in planned.items():
        places = [theirs.names.index(one) for one in theirs.key]
        progress = filling.progress_of(name)
        for batch in batched(origin.rows(theirs, progress), most_rows):
            progress = TableProgress([batch[-1][place] for place in places], progress.copied + len(batch))
            filling.add(ours, [row[: len(ours.columns)] for row in batch], planned, progress)
            done += len(batch)
            notice(done, total, name)
    _compare(origin, filling, planned)
    filling.set_last_numbers({name: origin.last_number(theirs) for name, (theirs, _) in planned.items()})
    left_out = [name for name in sorted(origin.tables.keys() - planned.keys() - OF_EACH_DATABASE) if origin.count(name)]
    return MoveResult({name: origin.count(name) for name in planned}, left_out, filling.is_resumed)


def _compare(origin: RowSource, filling: Filling, planned: Iterable[str]) -> None:
    for name in planned:
        there, [here] = origin.measure(name), filling.ask(measure(name))
        if there != int(here or 0):
            raise MoveRefused(f"{name} has {there} rows in the source and {here} in the target; report this, and keep both")
