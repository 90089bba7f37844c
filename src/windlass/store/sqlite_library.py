"""The SQLite library of this process: `windlass.sqlite_driver`."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

from windlass.errors import ConfigError

VARIABLE = "WINDLASS_SQLITE_DRIVER"
_LIBRARIES = {"pysqlite3": "pysqlite3.dbapi2", "sqlite3": "sqlite3"}


class _Library:
    """The library, chosen when something of it is first used; from then on the choice holds.

    Two libraries on one file drop each other's locks, so what is open cannot move to the other one.
    """

    _chosen: Any = None
    _must_be_standard = False

    @property
    def is_prescribed(self) -> bool:
        """Whether the library is set for this process: installing another one changes nothing."""
        return self._must_be_standard or os.environ.get(VARIABLE) is not None

    @property
    def module(self) -> Any:
        """The library's module."""
        if self._chosen is None:
            self._chosen = _find()
        return self._chosen

    def __getattr__(self, name: str) -> Any:
        # From now on without a detour.
        value = self.__dict__[name] = getattr(self.module, name)
        return value

    def choose_standard(self) -> None:
        self._must_be_standard = True
        if self._chosen is None and os.environ.get(VARIABLE) is None:
            self._chosen = import_module("sqlite3")
        if self.module.__name__ != "sqlite3":
            raise ConfigError(
                f"SQLite: this process uses {self.module.__name__} already, and what it is to go with uses Python's own sqlite3; "
                f"two SQLite libraries in one process can corrupt the file: set {VARIABLE}=sqlite3"
            )


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


driver: Any = _Library()
"""The library, without choosing it before it is used."""


def use_standard_sqlite() -> None:
    """Use Python's own sqlite3 in this process, as its other connections to the file do.

    Call it before Windlass opens a database. Raises ConfigError when another library is in use, or named by the environment.
    """
    driver.choose_standard()


def __getattr__(name: str) -> Any:
    if name == "sqlite_driver":
        return driver.module
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
