"""The HTTP server: every test that touches a database runs on a SQLite file and on PostgreSQL."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.stores import fresh_url
from tests.web.serving import Served, served
from windlass import Windlass
from windlass.core.known_task import DeclaredTask


@pytest.fixture(params=["sqlite-file", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Give the URL of a fresh, migrated database."""
    server = request.getfixturevalue("postgres_server") if request.param == "postgres" else None
    with fresh_url(request.param, tmp_path, server) as made:
        yield made


@pytest.fixture
async def web(url: str) -> AsyncIterator[Served]:
    """Give a server with every kind of credential, spoken to without a socket."""
    async with served(Windlass(url, **SETTINGS)) as made:
        yield made


@pytest.fixture
async def crawled(web: Served) -> None:
    """Let the fleet know the task `crawl`, as a worker with the pack does."""
    await (await web.app.store()).tasks.declare([DeclaredTask(name="crawl")])


SETTINGS: dict[str, Any] = {"admin_token": "static-admin-token", "worker_secret": "shared-worker-secret", "jwt_secret": "j" * 32}
