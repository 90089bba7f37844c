"""A table whose reads take as long as a test wants."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager

import psycopg

from windlass.store.sqlite_library import sqlite_driver as driver

_COLUMNS = "id, name, url, last_run_at, metadata, created_at, updated_at"
_ROWS_PER_SECOND = 2_000_000


@contextmanager
def stuck_sources(url: str, *, seconds: float | None = None) -> Iterator[None]:
    """Make every read of sources last: without `seconds` until the block ends, with them about so long on SQLite."""
    with _locked(url) if url.startswith("postgres") else _counting(url.removeprefix("sqlite:///"), seconds):
        yield


@contextmanager
def _locked(dsn: str) -> Iterator[None]:
    with psycopg.connect(dsn) as stranger:
        stranger.execute("lock table windlass_sources in access exclusive mode")
        yield


@contextmanager
def _counting(path: str, seconds: float | None) -> Iterator[None]:
    """Put a view in the table's place that counts before it finds anything; SQLite has no lock that only readers wait for."""
    last = "" if seconds is None else f" where n < {round(seconds * _ROWS_PER_SECOND)}"
    counted = f"with recursive counted (n) as (select 1 union all select n + 1 from counted{last})"
    with closing(driver.connect(path, isolation_level=None, timeout=10)) as connection:
        connection.execute("pragma legacy_alter_table = on")
        connection.execute("alter table windlass_sources rename to kept_sources")
        # A cross join is read in the order it is written: it counts first, also where the table is empty.
        found = f"select {_COLUMNS} from (select count(*) as total from counted) cross join kept_sources where total > 0"
        connection.execute(f"create view windlass_sources as {counted} {found}")
        try:
            yield
        finally:
            connection.execute("drop view windlass_sources")
            connection.execute("alter table kept_sources rename to windlass_sources")
