"""Crash and race tests: real processes on a SQLite file and on PostgreSQL."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from random import Random

import pytest

from tests.crash.processes import Fleet
from tests.support.postgres_server import DSN_VARIABLE, PostgresServer, running_postgres
from tests.support.stores import fresh_url
from windlass.store import Store, open_store
from windlass.store.doctor import check

BACKENDS = ("sqlite-file", "postgres")


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def url(backend: str, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Give a migrated, empty database that every process of the test can open."""
    server = request.getfixturevalue("postgres_server") if backend == "postgres" else None
    with fresh_url(backend, tmp_path, server) as made:
        yield made


@pytest.fixture(scope="module")
def own_server() -> Iterator[PostgresServer]:
    """Give a server that a test may stop and whose log it may read; the session's is shared."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv(DSN_VARIABLE, raising=False)
        with running_postgres() as server:
            yield server


@pytest.fixture
async def store(url: str) -> AsyncIterator[Store]:
    """Give the test's own view of the database, and hold it to every rule when the processes are gone."""
    opened = open_store(url, rng=Random(1))
    try:
        yield opened
        assert await check(opened) == []
    finally:
        await opened.aclose()


@pytest.fixture
def fleet(store: Store, tmp_path: Path) -> Iterator[Fleet]:
    """Give processes that end before the store is checked."""
    del store
    opened = Fleet(tmp_path)
    yield opened
    opened.close()


def is_long() -> bool:
    """Whether the long form was asked for."""
    return os.environ.get("WINDLASS_TEST_LONG") == "1"
