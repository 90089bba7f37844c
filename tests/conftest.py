"""Fixtures that every suite shares."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

import pytest
from hypothesis import settings

from tests.support.postgres_server import PostgresServer, running_postgres

# How long an example takes says nothing on a machine that others use too.
settings.register_profile("windlass", deadline=None)
settings.load_profile("windlass")


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """Give the session's PostgreSQL, started by the first test that asks for it."""
    with running_postgres() as server:
        yield server


@pytest.fixture
def postgres_dsn(postgres_server: PostgresServer) -> Iterator[str]:
    """Give a fresh, empty database."""
    name = f"windlass_test_{uuid4().hex[:12]}"
    yield postgres_server.create_database(name)
    postgres_server.drop_database(name)
