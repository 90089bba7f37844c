"""A whole database as lines of JSON: a header, a line for each row, and a last line that shows that nothing is missing."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from windlass.errors import InvalidInput, MoveRefused
from windlass.store import migrate
from windlass.store.migrate import Scriptable
from windlass.store.moving.filling import TableProgress
from windlass.store.moving.move import Notice, TableReader
from windlass.store.moving.tables import OF_EACH_DATABASE, Table, TableColumn, Values

FORMAT = 1
EVERYTHING = "everything"


def write_lines(source: Scriptable, write: Callable[[str], object], notice: Notice) -> int:
    """Write every row of every table; returns how many. No writer is let in meanwhile."""

    def work(connection: Any) -> int:
        reading = TableReader(connection, source.dialect)
        tables = {name: table for name, table in sorted(reading.tables.items()) if name not in OF_EACH_DATABASE}
        counts = {name: reading.count(name) for name in tables}
        write(_line(_header(reading, tables, counts, source.dialect)))
        done, total = 0, sum(counts.values())
        for name, table in tables.items():
            for row in reading.rows(table, TableProgress()):
                kept = {column: value for column, value in zip(table.names, row, strict=True) if value is not None}
                write(_line({"table": name, "row": kept}))
                done += 1
                if done % 1000 == 0:
                    notice(done, total, name)
        write(_line({"rows": done}))
        return done

    return source.run_script(work)


def _header(reading: TableReader, tables: dict[str, Table], counts: dict[str, int], dialect: str) -> dict[str, Any]:
    described = {
        name: {
            "columns": list(table.names),
            "key": list(table.key),
            "rows": counts[name],
            "measure": reading.measure(name),
            "last_number": reading.last_number(table) if table.sequence else None,
        }
        for name, table in tables.items()
    }
    version = migrate.migrations(dialect)[-1].version
    return {"windlass_export": FORMAT, "what": EVERYTHING, "schema": version, "marks": reading.marks(), "tables": described}


def _line(document: dict[str, Any]) -> str:
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")) + "\n"


class LinesOrigin:
    """An export of everything, read from its first line to its last."""

    def __init__(self, header: dict[str, Any], lines: Iterator[tuple[int, str]]) -> None:
        """Read the rows behind a header; each line comes with its number."""
        known = max(one.version for one in migrate.migrations("sqlite"))
        if header.get("windlass_export") != FORMAT or header.get("schema") != known:
            told = f"format {header.get('windlass_export')}, schema {header.get('schema')}"
            raise MoveRefused(
                f"the export was written by another version of Windlass ({told}; this one reads {FORMAT} and {known})"
            )
        self._described: dict[str, Any] = header["tables"]
        self._marks: dict[str, str] = header["marks"]
        self._lines = lines
        self._next: tuple[str, dict[str, Any]] | None = None
        self._rows = 0
        self.tables = {name: _table(name, each) for name, each in self._described.items()}

    def marks(self) -> dict[str, str]:
        """Return what distinguishes this export from any other."""
        return self._marks

    def rows(self, table: Table, progress: TableProgress) -> Iterator[Values]:
        """Read the rows of a table beyond those that are copied; tables come in the order of their names."""
        copied = progress.copied
        while (found := self._peek()) is not None and found[0] <= table.name:
            self._next = None
            if found[0] == table.name:
                copied -= 1
                if copied < 0:
                    yield tuple(found[1].get(name) for name in table.names)

    def _peek(self) -> tuple[str, dict[str, Any]] | None:
        """Look at the next row; None at the last line."""
        if self._next is None:
            number, text = next(self._lines, (0, ""))
            document = read_line(number, text) if text else {}
            if "row" in document:
                self._rows += 1
                self._next = document["table"], document["row"]
            elif document.get("rows") != self._rows:
                raise MoveRefused(f"the export ends in the middle, after {self._rows} rows: copy the file again")
            else:
                self._lines = iter([(number, text)])
        return self._next

    def count(self, table: str) -> int:
        """Return how many rows the table had."""
        return int(self._described[table]["rows"])

    def measure(self, table: str) -> int:
        """Return what must arrive."""
        return int(self._described[table]["measure"])

    def last_number(self, table: Table) -> int:
        """Return the highest number that the table had given."""
        return int(self._described[table.name]["last_number"] or 0)


def _table(name: str, described: dict[str, Any]) -> Table:
    columns = tuple(TableColumn(column, "") for column in described["columns"])
    return Table(name, columns, tuple(described["key"]), name if described["last_number"] is not None else None)


def read_line(number: int, text: str) -> dict[str, Any]:
    """Read one line; raises InvalidInput naming it."""
    try:
        found = json.loads(text)
    except ValueError as error:
        raise InvalidInput(f"line {number}", text[:80], f"is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise InvalidInput(f"line {number}", text[:80], "must be a JSON object")
    return found
