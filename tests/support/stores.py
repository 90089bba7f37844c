"""Fresh, migrated stores of every kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import cache
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from threading import Event
from typing import Any
from uuid import uuid4

from tests.support.postgres_server import PostgresServer
from tests.support.recycling import Recycler
from windlass.store import Store, migrate, open_store
from windlass.store.postgres import SyncPostgres
from windlass.store.sqlite import Sqlite
from windlass.testing import FakeClock

BACKENDS = ("sqlite-memory", "sqlite-file", "postgres")
_TEMPLATE = "windlass_template"
_recyclers: dict[str, Recycler] = {}
_free: dict[str, list[tuple[str, str]]] = {}


def migrate_postgres(dsn: str) -> None:
    """Bring a database's schema up to date."""
    database = SyncPostgres(dsn)
    try:
        migrate.up(database)
    finally:
        database.close()


def migrate_sqlite(path: Path) -> None:
    """Make a file's schema."""
    database = Sqlite(str(path), Random(0))
    try:
        migrate.up(database)
    finally:
        database.close()


def _copied(server: PostgresServer) -> tuple[str, str]:
    """Copy a migrated database, faster than migrating each time; gives its name and its DSN."""
    if server.dsn not in _recyclers:
        template = server.create_database(_TEMPLATE)
        migrate_postgres(template)
        _recyclers[server.dsn] = Recycler(template)
    name = f"windlass_test_{uuid4().hex[:12]}"
    return name, server.create_database(name, template=_TEMPLATE)


@contextmanager
def fresh_postgres(server: PostgresServer) -> Iterator[str]:
    """Make a database that nobody has used, and drop it afterwards."""
    name, dsn = _copied(server)
    try:
        yield dsn
    finally:
        server.drop_database(name)


@contextmanager
def lent_postgres(server: PostgresServer) -> Iterator[str]:
    """Lend an empty database, perhaps one that another test had; for tests that do not look at plans or sizes."""
    free = _free.setdefault(server.dsn, [])
    name, dsn = free.pop() if free else _copied(server)
    try:
        yield dsn
    finally:
        if _recyclers[server.dsn].renew(dsn):
            free.append((name, dsn))
        else:
            server.drop_database(name)


@contextmanager
def fresh_url(backend: str, folder: Path, server: PostgresServer | None) -> Iterator[str]:
    """Give the URL of an empty database that several processes can open."""
    if backend == "postgres":
        assert server is not None
        with lent_postgres(server) as dsn:
            yield dsn
    else:
        path = folder / f"{uuid4().hex[:12]}.db"
        path.write_bytes(sqlite_template())
        yield f"sqlite:///{path}"


@cache
def sqlite_template() -> bytes:
    """Give the content of a migrated file, faster than migrating each time."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "template.db"
        migrate_sqlite(path)
        return path.read_bytes()


def at_time(store: Store, moment: datetime) -> Store:
    """Return a store for which it is this moment."""
    assert isinstance(store, Store)
    return store.at(FakeClock(moment))


def memory_store(rng: Random) -> Store:
    """Open a migrated store in memory."""
    store = open_store("sqlite://", rng=rng)
    assert isinstance(store.database, Sqlite)
    migrate.up(store.database)
    return store


def hold_writes(database: Any, locked: Callable[[], object], released: Event) -> None:
    """Sit in the middle of a writing transaction that keeps every other writer out, from `locked` until `released`."""

    def hold(connection: Any) -> None:
        # SQLite's transaction locks the whole file by itself.
        if isinstance(database, SyncPostgres):
            connection.execute("lock table windlass_jobs in access exclusive mode")
        locked()
        released.wait()

    database.run_script(hold)
