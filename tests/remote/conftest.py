"""The HTTP client against a real server on a socket."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.support.stores import migrate_sqlite
from tests.web.serving import listening
from windlass import Windlass
from windlass.remote import AsyncClient, Client
from windlass.store import Store

TOKEN = "static-admin-token"


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Give a file that the tests of a module share, as they share its server: making one takes most of a test's time."""
    path: Path = tmp_path_factory.mktemp("remote") / "windlass.db"
    migrate_sqlite(path)
    return f"sqlite:///{path}"


@pytest.fixture(scope="module")
def address(database: str) -> Iterator[str]:
    """Serve the file, and give where."""
    with listening(Windlass(database, admin_token=TOKEN, accept_unknown=True)) as port:
        yield f"http://127.0.0.1:{port}"


@pytest.fixture
def client(address: str) -> Iterator[Client]:
    with Client(address, TOKEN) as made:
        yield made


@pytest.fixture
async def aclient(address: str) -> AsyncIterator[AsyncClient]:
    async with AsyncClient(address, TOKEN) as made:
        yield made


@pytest.fixture
async def store(database: str) -> AsyncIterator[Store]:
    """Give the test's own view of the database."""
    async with Windlass(database) as app:
        opened = await app.store()
        assert isinstance(opened, Store)
        yield opened
