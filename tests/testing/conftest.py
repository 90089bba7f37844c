"""Every promise of the helpers, on a database in memory, on a file and on PostgreSQL."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.support.stores import BACKENDS, fresh_url
from windlass import Windlass
from windlass.store import Store
from windlass.store.doctor import check
from windlass.testing import FakeClock, fresh

NOWHERE = "sqlite:////nowhere/jobs.db"
"""A database that cannot be opened: what leaves the private one fails."""


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture(params=BACKENDS)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite-memory":
        yield "sqlite://"
        return
    server = request.getfixturevalue("postgres_server") if request.param == "postgres" else None
    with fresh_url(request.param, tmp_path, server) as made:
        yield made


@pytest.fixture
async def app(url: str, clock: FakeClock) -> AsyncIterator[Windlass]:
    """Give an application on a private database; afterwards every rule of the store must hold."""
    async with fresh(Windlass(NOWHERE), url, clock=clock) as made:
        yield made
        store = await made.store()
        assert isinstance(store, Store)
        assert await check(store) == []
