"""The way of commands to the database."""

from __future__ import annotations

import getpass
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager

from windlass.app import Windlass
from windlass.client.operations import Operator
from windlass.core.audit import Actor


@contextmanager
def operating(database: str | None, app: Windlass | None = None) -> Iterator[Operator]:
    """Give every verb on a database, audited as the person at the terminal; of an application, if there is one."""
    # The driver's pool would write to the terminal by itself; what it says comes as an error too.
    logging.getLogger("psycopg").addHandler(logging.NullHandler())
    with app or Windlass(database) as opened:
        if app is not None and database is not None:
            app.configure(database_url=database)
        opened.check_schema()
        yield opened.acting_sync(Actor(person()))


def person() -> str:
    """Name who types, as the audit log does."""
    try:
        return f"cli:{getpass.getuser()}"
    except (KeyError, OSError):
        # A container may run as a user that has no name.
        return f"cli:{os.getuid()}"
