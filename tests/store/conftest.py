"""The contract of a store: every test here runs on SQLite in memory, on a SQLite file and on PostgreSQL."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import ExitStack
from random import Random

import pytest

from tests.support.stores import BACKENDS, fresh_url, memory_store
from windlass.store import Store, open_store
from windlass.store.doctor import check
from windlass.store.postgres import Postgres
from windlass.store.sqlite import Sqlite
from windlass.testing import FakeClock


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def rng() -> Random:
    return Random(20260115)


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def store(backend: str, request: pytest.FixtureRequest, rng: Random, clock: FakeClock) -> AsyncIterator[Store]:
    """Give an empty store, and hold it to every rule when the test is done."""
    with ExitStack() as stack:
        if backend == "sqlite-memory":
            opened = memory_store(rng)
        else:
            server = request.getfixturevalue("postgres_server") if backend == "postgres" else None
            opened = open_store(stack.enter_context(fresh_url(backend, request.getfixturevalue("tmp_path"), server)), rng=rng)
        try:
            timed = opened.at(clock)
            yield timed
            assert await check(timed) == []
        finally:
            await opened.aclose()


@pytest.fixture
async def stores(store: Store, clock: FakeClock) -> AsyncIterator[list[Store]]:
    """Give five stores on one database; one in memory belongs to a single connection, which they share."""
    database = store.database
    if isinstance(database, Sqlite) and database.path == ":memory:":
        yield [store] * 5
        return
    assert isinstance(database, Sqlite | Postgres)
    url = f"sqlite:///{database.path}" if isinstance(database, Sqlite) else database.dsn
    others = [open_store(url, rng=Random(seed)).at(clock) for seed in range(4)]
    yield [store, *others]
    for other in others:
        await other.aclose()
