"""A process that keeps every other one from writing, as a long migration or backup would."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from random import Random
from threading import Event
from typing import Any

from tests.crash.child import Ears, say
from windlass.store import open_database
from windlass.store.postgres import SyncPostgres


@dataclass(frozen=True)
class Options:
    """Which database to lock."""

    url: str


async def main(options: Options) -> None:
    """Sit in the middle of a writing transaction from the first word to the second."""
    database = open_database(options.url, rng=Random())
    released = Event()

    def hold(connection: Any) -> None:
        # SQLite's transaction locks the whole file by itself.
        if isinstance(database, SyncPostgres):
            connection.execute("lock table windlass_jobs in access exclusive mode")
        say("locked")
        released.wait()

    ears = Ears()
    await ears.ready()
    holding = asyncio.get_running_loop().run_in_executor(None, database.run_script, hold)
    assert await ears.hear() == "unlock"
    released.set()
    await holding
    database.close()
