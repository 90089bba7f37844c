"""The SQLite library of this process: `windlass.sqlite_driver`."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

from windlass.errors import ConfigError

VARIABLE = "WINDLASS_SQLITE_DRIVER"
_LIBRARIES = {"pysqlite3": "pysqlite3.dbapi2", "sqlite3": "sqlite3"}


def _find() -> Any:
    """Import the library that the environment names; else pysqlite3, which is free of the WAL-reset bug, if it is there."""
    wanted = os.environ.get(VARIABLE)
    if wanted is not None:
        if wanted not in _LIBRARIES:
            raise ConfigError(f"{VARIABLE}: must be sqlite3 or pysqlite3 (got {wanted!r})")
        try:
            return import_module(_LIBRARIES[wanted])
        except ModuleNotFoundError:
            raise ConfigError(f"{VARIABLE}: {wanted} is not installed; install windlass[sqlite]") from None
    try:
        return import_module(_LIBRARIES["pysqlite3"])
    except ImportError:
        return import_module("sqlite3")


sqlite_driver: Any = _find()
