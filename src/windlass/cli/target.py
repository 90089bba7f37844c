"""Finds an application by the name people type."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

from windlass.app import Windlass
from windlass.errors import ConfigError

OWN = "windlass.packs.standard:app"
"""The application of commands that are given none and run packs only."""


def load_app(target: str) -> Windlass:
    """Import `module:attribute`, looking in the current folder first."""
    module, colon, attribute = target.partition(":")
    if not colon or not module or not attribute:
        raise ConfigError(f"{target!r} does not name an application; write module:attribute, as in myproject.jobs:app")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        found = getattr(importlib.import_module(module), attribute)
    except ModuleNotFoundError as error:
        # A module that the application itself fails to import is its own trouble, and its traceback says where.
        if error.name is None or not (module == error.name or module.startswith(f"{error.name}.")):
            raise
        raise ConfigError(f"{target!r}: there is no module {module!r}; is this the right folder?") from None
    except AttributeError:
        raise ConfigError(f"{target!r}: module {module!r} has no {attribute!r}") from None
    if not isinstance(found, Windlass):
        raise ConfigError(f"{target!r} is a {type(found).__name__}, not a Windlass application")
    return found


def open_app(target: str | None, **settings: Any) -> Windlass:
    """Give the application that was named, or one that has only a database; with the settings that were typed."""
    app = Windlass() if target is None else load_app(target)
    app.configure(**{name: value for name, value in settings.items() if value is not None})
    return app
