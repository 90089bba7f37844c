"""Windlass beside SQLAlchemy: an application on the database of an engine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from sqlalchemy import URL, Engine

from windlass.app import Windlass
from windlass.errors import ConfigError
from windlass.store.sqlite_library import use_standard_sqlite

if TYPE_CHECKING:
    # It needs greenlet, which SQLAlchemy 2.1 brings only as `sqlalchemy[asyncio]`.
    from sqlalchemy.ext.asyncio import AsyncEngine

    from windlass.given_settings import GivenSettings

_NOT_FOR_LIBPQ = frozenset({"async_fallback", "prepared_statement_cache_size", "prepared_statement_name_func"})


def windlass_on(engine: Engine | AsyncEngine, *, name: str = "app", **settings: Unpack[GivenSettings]) -> Windlass:
    """Make an application on the engine's database, which takes the engine's sessions and connections as they are.

    On SQLite this process then uses the engine's SQLite library. Raises ConfigError for a database that cannot be shared.
    """
    used = engine if isinstance(engine, Engine) else engine.sync_engine
    if used.dialect.name == "sqlite":
        # aiosqlite and SQLAlchemy's own choice use Python's library; an engine with `module=` may have another one.
        if used.dialect.dbapi is not None and _is_standard(used.dialect.dbapi):
            use_standard_sqlite()
        return Windlass(_sqlite_url(used.url), name=name, **settings)
    if used.dialect.name == "postgresql":
        return Windlass(_postgres_url(used.url), name=name, **settings)
    raise ConfigError(f"engine: Windlass lives in SQLite and PostgreSQL, not in {used.dialect.name}")


def _is_standard(dbapi: Any) -> bool:
    return any(kind.__module__ == "sqlite3" for kind in dbapi.Error.__mro__)


def _sqlite_url(url: URL) -> str:
    if url.database in {None, "", ":memory:"} or str(url.database).startswith("file:"):
        raise ConfigError("engine: its SQLite database must be a file, given by its path: others cannot be opened twice")
    return f"sqlite:///{Path(str(url.database)).absolute()}"


def _postgres_url(url: URL) -> str:
    query = {key: value for key, value in url.query.items() if key not in _NOT_FOR_LIBPQ}
    if "ssl" in query:
        query["sslmode"] = query.pop("ssl")
    return url.set(drivername="postgresql", query=query).render_as_string(hide_password=False)
