"""Several stores on one database, as several processes would open it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random

from windlass.ports import Clock
from windlass.store import Store, open_store
from windlass.store.postgres import Postgres
from windlass.store.sqlite import Sqlite


def _opened(url: str, seed: int, clock: Clock | None) -> Store:
    store = open_store(url, rng=Random(seed))
    return store if clock is None else store.at(clock)


@asynccontextmanager
async def rivals(store: Store, count: int = 4) -> AsyncIterator[list[Store]]:
    """Open the store's database again; one in memory belongs to its only store."""
    database = store.database
    if isinstance(database, Postgres):
        url = database.dsn
    elif isinstance(database, Sqlite) and database.path != ":memory:":
        url = f"sqlite:///{database.path}"
    else:
        yield [store] * count
        return
    opened = [_opened(url, place, store.means.clock) for place in range(count)]
    try:
        yield opened
    finally:
        for one in opened:
            await one.aclose()
