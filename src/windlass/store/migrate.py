"""Numbered schema changes: forward only, one process at a time, never edited once applied."""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from windlass.errors import SchemaError, SchemaTooNew, SchemaTooOld
from windlass.store.spelling import SQL

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

T = TypeVar("T")
log = logging.getLogger("windlass.store")
steps = logging.getLogger("windlass.store.migrate")

_FILE = re.compile(r"(\d{4})_(\w+)\.sql")
# Any fixed number: it names the lock that keeps two processes from migrating at once.
_FTS5 = "select sqlite_version(), count(*) from pragma_module_list where name = 'fts5'"
_LOCK = 7_301_946_200_281
_LOCK_TIMEOUT = "10s"
_ALIKE = {
    "bdcf380faa2bf2f6b12ff025130279b482f7e0dfbc2368c7d71d23e040803bca",
    "1b2940a390dbd5ffc249fb168177a679826a9a034308a6a0cb245ea1b94595e8",
}
"""Digests of former texts that differ from today's in a comment only."""
UNFINISHED = 0
"""Stands among the versions of a database that a move is filling, so that no process works with the half of it."""
_GUARDED = "table sqlite_master may not be modified"
OLDEST_POSTGRES = 150_000
_TABLE = """create table if not exists windlass_schema (
    version integer primary key, name text not null, checksum text not null, applied_at text not null
)"""


class Migration(NamedTuple):
    """One numbered file."""

    version: int
    name: str
    sql: str

    @property
    def checksum(self) -> str:
        """Name the file's content, whatever its line ends are."""
        return hashlib.sha256("\n".join(self.sql.splitlines()).encode()).hexdigest()


class Applied(NamedTuple):
    """A migration and whether the database has it."""

    version: int
    name: str
    is_applied: bool


class Scriptable(Protocol):
    """A database that can run plain work in one transaction."""

    @property
    def dialect(self) -> str:
        """Which folder of migrations it takes."""
        ...

    def run_script(self, work: Callable[[Any], T], /) -> T:
        """Run `work` with a connection, in one transaction."""
        ...


def migrations(dialect: str) -> list[Migration]:
    """Read the migrations of a dialect, in order."""
    folder = SQL.joinpath(dialect, "migrations")
    found = ((match, entry) for entry in folder.iterdir() if (match := _FILE.fullmatch(entry.name)))
    return sorted(Migration(int(match[1]), match[2], entry.read_text("utf-8")) for match, entry in found)


def status(database: Scriptable) -> list[Applied]:
    """List every known migration; nothing is written."""
    known = migrations(database.dialect)
    applied = database.run_script(lambda connection: _applied(connection, database.dialect))
    _check(known, applied)
    return [Applied(one.version, one.name, one.version in applied) for one in known]


def check(dialect: str, applied: Mapping[int, str]) -> None:
    """Raise SchemaError unless exactly the migrations of this version were applied."""
    known = migrations(dialect)
    _check(known, applied)
    missing = [f"{one.version:04}_{one.name}" for one in known if one.version not in applied]
    if missing:
        raise SchemaTooOld(
            f"the schema is older than this version of Windlass ({', '.join(missing)} missing); run `windlass migrate`"
        )


def up(database: Scriptable, *, dry_run: bool = False) -> list[Migration]:
    """Apply what is missing, all or nothing; returns what was (or, on a dry run, would be) applied."""
    known = migrations(database.dialect)

    def work(connection: Any) -> list[Migration]:
        if not dry_run:
            _lock(connection, database.dialect)
        applied = _applied(connection, database.dialect)
        _check(known, applied)
        missing = [one for one in known if one.version not in applied]
        if missing and not dry_run:
            connection.execute(_TABLE)
            for place, one in enumerate(missing):
                steps.debug("applying migration %d of %d: %04d_%s", place + 1, len(missing), one.version, one.name)
                _apply(connection, database.dialect, one)
        return missing

    return database.run_script(work)


def _lock(connection: Any, dialect: str) -> None:
    # SQLite's transaction is exclusive already. The lock of PostgreSQL ends with the transaction, so poolers may be between.
    if dialect == "sqlite":
        [[version, has_words]] = connection.execute(_FTS5)
        if not has_words:
            raise SchemaError(f"SQLite {version} was built without FTS5; install windlass[sqlite] for a build that has it")
    if dialect == "postgres":
        [version] = connection.execute("select current_setting('server_version_num')::integer").fetchone()
        if version < OLDEST_POSTGRES:
            raise SchemaError(f"PostgreSQL {version // 10_000} is too old; {OLDEST_POSTGRES // 10_000} is the oldest supported")
        connection.execute(f"set local lock_timeout = '{_LOCK_TIMEOUT}'")
        connection.execute(f"select pg_advisory_xact_lock({_LOCK})")


def _applied(connection: Any, dialect: str) -> dict[int, str]:
    exists = {
        "postgres": "select to_regclass('windlass_schema') is not null",
        "sqlite": "select count(*) from sqlite_master where type = 'table' and name = 'windlass_schema'",
    }[dialect]
    if not connection.execute(exists).fetchone()[0]:
        return {}
    return dict(connection.execute("select version, checksum from windlass_schema order by version").fetchall())


def _check(known: Sequence[Migration], applied: Mapping[int, str]) -> None:
    texts = {one.version: one for one in known}
    if UNFINISHED in applied:
        raise SchemaError("a move into this database has not ended; give the same `windlass move` again, and it goes on")
    for version, checksum in applied.items():
        if version not in texts:
            raise SchemaTooNew(
                f"the database has migration {version}, which this version of Windlass does not know: upgrade Windlass"
            )
        if checksum not in {texts[version].checksum, *_ALIKE}:
            raise SchemaError(f"migration {version} was applied from another text; a released migration is never edited")


def _execute(connection: Any, statement: str) -> None:
    try:
        connection.execute(statement)
    except Exception as error:
        # Some systems build SQLite so that the text of its schema cannot be written. What we change there is a check's
        # spelling, or what it refuses that no verb writes, so the tables stay as they are.
        if _GUARDED not in str(error):
            raise
        log.info("this SQLite guards the text of its schema; its checks keep their older form")


def _apply(connection: Any, dialect: str, one: Migration) -> None:
    for statement in statements(one.sql) if dialect == "sqlite" else [one.sql]:
        _execute(connection, statement)
    clock = (
        "strftime('%Y-%m-%dT%H:%M:%SZ', 'now')"
        if dialect == "sqlite"
        else "to_char(now() at time zone 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')"
    )
    # All values come from our own files: a number, a name and a digest.
    connection.execute(
        f"insert into windlass_schema (version, name, checksum, applied_at) "  # noqa: S608
        f"values ({one.version}, '{one.name}', '{one.checksum}', {clock})"
    )


def statements(sql: str) -> list[str]:
    """Cut a script at the semicolons that end a statement, leaving trigger bodies whole."""
    found: list[str] = []
    part: list[str] = []
    in_trigger = False
    for line in sql.splitlines():
        if not part and not line.strip():
            continue
        part.append(line)
        in_trigger = in_trigger or line.startswith("create trigger")
        ends = line == "end;" if in_trigger else line.rstrip().endswith(";") and not line.lstrip().startswith("--")
        if ends:
            found.append("\n".join(part))
            part, in_trigger = [], False
    return found
