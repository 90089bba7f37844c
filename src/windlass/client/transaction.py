"""Finds the driver's own connection inside what a caller holds."""

from __future__ import annotations

import inspect
from typing import Any

from windlass.errors import ConfigError

_ASYNC = frozenset({"aiosqlite", "asyncpg"})
_BLOCKING = frozenset({"pg8000", "psycopg", "psycopg2", "psycopg_pool"})
"""Drivers of PostgreSQL, which may keep their caller waiting for long; some of them have asynchronous connections too."""
_DRIVERS = _ASYNC | _BLOCKING | {"pysqlite3", "sqlite3"}


async def driver_connection(given: Any, *, is_blocking: bool) -> Any:
    """Unwrap an SQLAlchemy session or connection; a driver's connection comes back as it is.

    Raises ConfigError for one that the calling side cannot use.
    """
    connection = await _unwrapped(given) if _package(given) == "sqlalchemy" else given
    package = _package(connection)
    if package not in _DRIVERS:
        raise ConfigError(
            "connection: a psycopg, asyncpg, psycopg2, sqlite3, aiosqlite or SQLAlchemy connection or session is needed, "
            f"not {_name(connection)}"
        )
    is_async = package in _ASYNC or inspect.iscoroutinefunction(getattr(type(connection), "execute", None))
    if is_async and is_blocking:
        raise ConfigError(f"connection: {_name(given)} is asynchronous; use `await …enqueue()` instead of enqueue_sync()")
    if package in _BLOCKING and not is_async and not is_blocking:
        raise ConfigError(f"connection: {_name(given)} blocks; use enqueue_sync() instead of `await …enqueue()`")
    return connection


async def _unwrapped(given: Any) -> Any:
    # Asking a session for its connection begins its transaction, which the job then belongs to.
    held = given
    if _has_class(given, {"Session", "AsyncSession", "scoped_session", "async_scoped_session"}):
        held = await _settled(given.connection())
    if _has_class(held, {"AsyncConnection"}):
        connection = (await held.get_raw_connection()).driver_connection
        if _package(connection) == "asyncpg":
            # SQLAlchemy begins its transaction with the first statement that goes through it.
            await held.exec_driver_sql("select 1")
        return connection
    proxy = held.connection if _has_class(held, {"Connection"}) else held
    return getattr(proxy, "driver_connection", proxy)


async def _settled(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value


def _has_class(value: object, names: set[str]) -> bool:
    return any(each.__name__ in names and _root(each) == "sqlalchemy" for each in type(value).__mro__)


def _package(value: object) -> str:
    """Name the library a value comes from, through subclasses of the caller's own."""
    return next((root for root in map(_root, type(value).__mro__) if root in _DRIVERS or root == "sqlalchemy"), "")


def _root(kind: type) -> str:
    return kind.__module__.partition(".")[0]


def _name(value: object) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}"
