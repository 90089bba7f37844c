"""Windlass as the Tasks backend of a Django project."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from windlass.django.backend import WindlassBackend as WindlassBackend
    from windlass.django.options import task_options as task_options

# Django opens SQLite files with the standard library's driver, and a second copy of SQLite in the same process can corrupt them.
# Children inherit it. Whoever uses another driver with Django says so in the environment.
os.environ.setdefault("WINDLASS_SQLITE_DRIVER", "sqlite3")

_HOME_OF = {"WindlassBackend": "backend", "task_options": "options"}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for: Django loads this module before its own applications are ready."""
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415 - as late as what it imports

    value = globals()[name] = getattr(import_module(f"{__name__}.{home}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME_OF})
