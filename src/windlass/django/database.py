"""The database of Django's settings, as Windlass reaches it."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import quote, urlencode

from django.core.exceptions import ImproperlyConfigured
from django.db import connections

from windlass.store.blocking import Blocking
from windlass.store.calls.call import Means
from windlass.store.lent import LentDatabase
from windlass.store.store import Store

DIALECTS = {"postgresql": "postgres", "sqlite": "sqlite"}
"""Django's names of the databases that Windlass lives in, and ours."""
_NOT_OF_LIBPQ = frozenset({"context", "cursor_factory", "pool", "server_side_binding", "assume_role", "isolation_level"})


def driver_connection(alias: str) -> Any:
    """Return the driver's connection that Django has open in this thread, opening it if there is none."""
    connection = connections[alias]
    connection.ensure_connection()
    # What comes after an error inside `atomic` would be rolled back with it: Django refuses queries then, and so do we.
    connection.validate_no_broken_transaction()
    return connection.connection


def lent_database(alias: str, rng: Random) -> LentDatabase:
    """Return the database over Django's own connections: what is written there commits or rolls back with the rest."""
    return LentDatabase(dialect_of(alias), partial(driver_connection, alias), rng)


def lent_store(alias: str, means: Means) -> Store:
    """Return every verb over Django's own connections, for code without an event loop."""
    return Store(Blocking(lent_database(alias, means.rng)), means)


def dialect_of(alias: str) -> str:
    """Return the dialect of a database of the settings; raises ImproperlyConfigured for one that Windlass has no SQL for."""
    vendor = connections[alias].vendor
    if vendor not in DIALECTS:
        raise ImproperlyConfigured(f"DATABASES[{alias!r}]: Windlass needs PostgreSQL or SQLite, not {vendor}")
    return DIALECTS[vendor]


def url_of(alias: str) -> str:
    """Write the database of the settings as a URL of Windlass; raises ImproperlyConfigured for one in memory."""
    connection = connections[alias]
    if dialect_of(alias) == "sqlite":
        return _sqlite_url(alias, str(connection.settings_dict["NAME"]))
    return _postgres_url(connection.get_connection_params())


def _sqlite_url(alias: str, name: str) -> str:
    if name == ":memory:" or "mode=memory" in name:
        raise ImproperlyConfigured(
            f"DATABASES[{alias!r}]: a database in memory belongs to the process that made it; "
            "workers and the dashboard need a file, or PostgreSQL"
        )
    path = name.removeprefix("file:").partition("?")[0] if name.startswith("file:") else name
    # Absolute, so that the worker may be started in another folder.
    return f"sqlite:///{quote(str(Path(path).absolute()))}"


def _postgres_url(params: dict[str, Any]) -> str:
    """Write what Django gives the driver as a URL; every parameter of libpq may stand in its query."""
    words = {
        "dbname" if name == "database" else name: str(value)
        for name, value in params.items()
        if name not in _NOT_OF_LIBPQ and name != "prepare_threshold" and value not in {None, ""}
    }
    # Django switches prepared statements off by itself; Windlass does where the settings ask for a pooler.
    return f"postgresql:///?{urlencode(words, quote_via=quote)}"
