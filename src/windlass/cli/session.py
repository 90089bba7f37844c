"""Connects commands to the database."""

from __future__ import annotations

import getpass
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote, urlsplit

import windlass.store  # noqa: F401 - loaded with the command, and not while it runs
from windlass.app import Windlass
from windlass.client.operations import Operator
from windlass.core.audit import Actor
from windlass.errors import ConfigError


@contextmanager
def operating(database: str | None, app: Windlass | None = None, *, makes_file: bool = False) -> Iterator[Operator]:
    """Open every verb on a database, audited as the person at the terminal; of an application, if there is one."""
    quiet_driver()
    with app or Windlass(database) as opened:
        if app is not None and database is not None:
            app.configure(database_url=database)
        if not makes_file:
            check_file(opened.settings.database_url)
        opened.check_schema()
        yield opened.acting_sync(Actor(person()))


def quiet_driver() -> None:
    """Keep the driver's pool from writing to the terminal by itself; the same comes as an error."""
    logging.getLogger("psycopg").addHandler(logging.NullHandler())


def check_file(url: str) -> None:
    """Refuse to look into a file that is not there: an empty one would be made, and it would seem that all is gone."""
    path = unquote(urlsplit(url).path)[1:] if url.startswith("sqlite:///") else ""
    if path and not Path(path).exists():
        raise ConfigError(f"there is no database {path!r}; name one with --database, or make it with `windlass migrate`")


def person() -> str:
    """Return the user's name, as the audit log has it."""
    try:
        return f"cli:{getpass.getuser()}"
    except (KeyError, OSError):
        # A container may run as a user that has no name.
        return f"cli:{os.getuid()}"
