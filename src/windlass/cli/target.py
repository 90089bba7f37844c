"""Finds an application by the name people type."""

from __future__ import annotations

import importlib
import sys
import traceback
from pathlib import Path
from typing import Any

import click

import windlass
from windlass.app import Windlass
from windlass.errors import ConfigError, WindlassError, nearest

_MISSING = object()
_NOT_THEIRS = tuple(str(Path(str(package.__file__)).parent) for package in (windlass, click, importlib))

OWN = "windlass.packs.standard:app"
"""The application of commands that are given none and run packs only."""


def load_app(target: str) -> Windlass:
    """Import an application as `module:attribute`, looking in the current folder first."""
    found = load_object(target)
    if not isinstance(found, Windlass):
        raise ConfigError(f"{target!r} is a {type(found).__name__}, not a Windlass application")
    return found


def load_object(target: str) -> Any:
    """Import `module:attribute`, looking in the current folder first."""
    module, colon, attribute = target.partition(":")
    if not colon or not module or not attribute:
        raise ConfigError(f"{target!r} does not name an application; write module:attribute, as in myproject.jobs:app")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        imported = importlib.import_module(module)
    except ModuleNotFoundError as error:
        # A module that the application itself fails to import is its own trouble, and its traceback shows where.
        if error.name is None or not (module == error.name or module.startswith(f"{error.name}.")):
            raise _broken(target, module, error) from None
        raise ConfigError(f"{target!r}: there is no module {module!r}; is this the right folder?") from None
    except Exception as error:  # noqa: BLE001 - the application's own code may raise anything
        raise _broken(target, module, error) from None
    try:
        found = getattr(imported, attribute, _MISSING)
    except (WindlassError, click.ClickException):
        raise
    except Exception as error:  # noqa: BLE001 - a module may find its attributes by the application's own code
        raise _broken(target, module, error) from None
    if found is _MISSING:
        raise ConfigError(f"{target!r}: module {module!r} has no {attribute!r}{nearest(attribute, vars(imported))}")
    return found


def _broken(target: str, module: str, error: Exception) -> ConfigError:
    """Show the traceback of the application's own code; ours and that of the import machinery is no help."""
    told = traceback.TracebackException.from_exception(error)
    part: traceback.TracebackException | None = told
    while part is not None:
        part.stack = traceback.StackSummary.from_list([frame for frame in part.stack if _is_theirs(frame.filename)])
        part = part.__cause__ or part.__context__
    click.echo("".join(told.format()).rstrip(), err=True)
    return ConfigError(f"{target!r}: importing module {module!r} failed; the traceback is above")


def _is_theirs(filename: str) -> bool:
    return not filename.startswith(("<frozen importlib", *_NOT_THEIRS))


def open_app(target: str | None, **settings: Any) -> Windlass:
    """Return the application that was named, or one that has only a database; with the settings that were typed."""
    app = Windlass() if target is None else load_app(target)
    app.configure(**{name: value for name, value in settings.items() if value is not None})
    return app
