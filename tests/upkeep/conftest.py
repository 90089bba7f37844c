"""Upkeep on every store, at a time the test sets."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.support.stores import BACKENDS, fresh_url, memory_store
from windlass.store import Store, open_store
from windlass.store.doctor import check
from windlass.testing import FakeClock
from windlass.upkeep.loop import Upkeep


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def plain(backend: str, request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[list[Store]]:
    """Give five stores on one database; one in memory belongs to one connection, which they share."""
    with ExitStack() as stack:
        if backend == "sqlite-memory":
            opened = [memory_store(Random(1))]
        else:
            server = request.getfixturevalue("postgres_server") if backend == "postgres" else None
            url = stack.enter_context(fresh_url(backend, tmp_path, server))
            opened = [open_store(url, rng=Random(seed)) for seed in range(5)]
        try:
            yield opened if len(opened) > 1 else opened * 5
            assert await check(opened[0]) == []
        finally:
            for store in opened:
                await store.aclose()


@pytest.fixture
def stores(plain: list[Store], clock: FakeClock) -> list[Store]:
    """Give the same stores at the test's time."""
    return [store.at(clock) for store in plain]


@pytest.fixture
def store(stores: list[Store]) -> Store:
    return stores[0]


@pytest.fixture
def fleet(stores: list[Store], clock: FakeClock) -> Callable[..., list[Upkeep]]:
    """Make instances of upkeep, as many as are asked for, each with a store of its own."""

    def make(count: int = 1, **options: Any) -> list[Upkeep]:
        return [Upkeep(stores[place], clock=clock, name=f"upkeep-{place}", **options) for place in range(count)]

    return make
