"""Fresh, migrated stores of every kind."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from uuid import uuid4

from tests.support.postgres_server import PostgresServer
from windlass.store import SqlStore, migrate, open_store
from windlass.store.postgres import SyncPostgres
from windlass.store.sqlite import Sqlite

BACKENDS = ("sqlite-memory", "sqlite-file", "postgres")
_TEMPLATE = "windlass_template"
_ready: set[int] = set()


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


@contextmanager
def fresh_postgres(server: PostgresServer) -> Iterator[str]:
    """Copy a migrated database, faster than migrating each time, and drop it afterwards."""
    if id(server) not in _ready:
        migrate_postgres(server.create_database(_TEMPLATE))
        _ready.add(id(server))
    name = f"windlass_test_{uuid4().hex[:12]}"
    try:
        yield server.create_database(name, template=_TEMPLATE)
    finally:
        server.drop_database(name)


@contextmanager
def fresh_url(backend: str, folder: Path, server: PostgresServer | None) -> Iterator[str]:
    """Make a migrated database that several processes can open, and give its URL."""
    if backend == "postgres":
        assert server is not None
        with fresh_postgres(server) as dsn:
            yield dsn
    else:
        path = folder / f"{uuid4().hex[:12]}.db"
        migrate_sqlite(path)
        yield f"sqlite:///{path}"


def memory_store(rng: Random) -> SqlStore:
    """Open a migrated store in memory."""
    store = open_store("sqlite://", rng=rng)
    assert isinstance(store.database, Sqlite)
    migrate.up(store.database)
    return store
