"""A process that keeps every other one from writing, as a long migration or backup would."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import partial
from random import Random
from threading import Event

from tests.crash.child import Ears, say
from tests.support.stores import hold_writes
from windlass.store import open_database


@dataclass(frozen=True)
class Options:
    """Which database to lock."""

    url: str


async def main(options: Options) -> None:
    """Sit in the middle of a writing transaction from the first word to the second."""
    database = open_database(options.url, rng=Random())
    released = Event()
    ears = Ears()
    await ears.ready()
    holding = asyncio.get_running_loop().run_in_executor(None, hold_writes, database, partial(say, "locked"), released)
    assert await ears.hear() == "unlock"
    released.set()
    await holding
    database.close()
