"""A worker in this process, on every database that processes can share."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import ExitStack
from random import Random

import pytest

from tests.support.stores import fresh_url
from tests.worker.rig import Rig
from windlass.store.doctor import check


@pytest.fixture(params=["sqlite-file", "postgres"])
def url(request: pytest.FixtureRequest) -> object:
    with ExitStack() as stack:
        server = request.getfixturevalue("postgres_server") if request.param == "postgres" else None
        yield stack.enter_context(fresh_url(request.param, request.getfixturevalue("tmp_path"), server))


@pytest.fixture
async def rig(url: str) -> AsyncIterator[Rig]:
    """Give a bench to declare tasks on and to run workers; afterwards every rule must hold."""
    made = Rig(url, Random(11))
    try:
        yield made
        await made.stop()
        assert await check(made.store) == []
    finally:
        await made.aclose()
