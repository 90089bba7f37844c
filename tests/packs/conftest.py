"""Packs on a database of their own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.stores import fresh_url
from windlass import Windlass


@pytest.fixture(params=["sqlite-file", "postgres"])
async def app(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Windlass]:
    with ExitStack() as stack:
        server = request.getfixturevalue("postgres_server") if request.param == "postgres" else None
        made = Windlass(stack.enter_context(fresh_url(request.param, tmp_path, server)))
        async with made:
            yield made
