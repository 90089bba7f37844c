"""Facts about the machine that does the upkeep."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from pathlib import Path

from windlass.core.alert_signs import Machine
from windlass.store import Store
from windlass.store.sqlite import Sqlite

_IN_MEMORY = ":memory:"


def this_machine(store: Store) -> Machine:
    """Read this machine's clock, and how full the disk of a SQLite file is; a test's time has no clock to differ from."""
    now = datetime.now(UTC) if store.means.clock is None else None  # noqa: TID251 - compared with the database's
    return Machine(now, _disk_used(store))


def _disk_used(store: Store) -> float | None:
    database = store.database
    if not isinstance(database, Sqlite) or database.path == _IN_MEMORY:
        return None
    try:
        disk = shutil.disk_usage(Path(database.path).absolute().parent)
    except OSError:
        return None
    # What only root may use is no room for us.
    room = disk.used + disk.free
    return disk.used / room if room else None
