"""Looks at the files of a SQLite database: how large they are, what is not written back, how much room is left."""

from __future__ import annotations

import os
import shutil
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from windlass.errors import StoreUnavailable
from windlass.store.sqlite_library import driver


class SqliteFiles(NamedTuple):
    """The files of a database, in bytes."""

    path: str
    size: int
    journal_size: int
    unwritten: int
    """What a checkpoint could not write back into the database, because a reader still needs what was there before."""
    free: int
    disk: int


def look_at(path: str) -> SqliteFiles:
    """Measure, after a checkpoint that does not wait; raises StoreUnavailable or OSError."""
    try:
        unwritten = _unwritten(path)
    except driver.Error as error:
        raise StoreUnavailable(str(error)) from error
    usage = shutil.disk_usage(Path(path).resolve().parent)
    return SqliteFiles(path, _size(path), _size(f"{path}-wal"), unwritten, usage.free, usage.total)


def _unwritten(path: str) -> int:
    """Write back what can be, as any commit does from time to time; no call waits for it."""
    with closing(driver.connect(path, isolation_level=None, timeout=0)) as connection:
        [[page]] = connection.execute("pragma page_size").fetchall()
        [[is_busy, frames, written]] = connection.execute("pragma wal_checkpoint(passive)").fetchall()
    return 0 if is_busy or frames < 0 else (frames - written) * page


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size  # noqa: PTH116 - a name, not a path to work with
    except FileNotFoundError:
        return 0
