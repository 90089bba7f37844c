"""The Python API: every test that touches a database runs on a SQLite file and on PostgreSQL."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.support.stores import fresh_url
from windlass import Windlass


@pytest.fixture(params=["sqlite-file", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Give the URL of a fresh, migrated database."""
    server = request.getfixturevalue("postgres_server") if request.param == "postgres" else None
    with fresh_url(request.param, tmp_path, server) as made:
        yield made


@pytest.fixture
async def app(url: str) -> AsyncIterator[Windlass]:
    """Give an application on it."""
    async with Windlass(url) as made:
        yield made
