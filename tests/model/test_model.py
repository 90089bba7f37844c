"""Random histories of every verb, on the model and on all stores at once."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from random import Random

import psycopg
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.model.bench import Bench, Side, empty_postgres, empty_sqlite
from tests.model.machine import LockStep
from tests.support.postgres_server import PostgresServer
from tests.support.stores import fresh_postgres, fresh_url, memory_store
from windlass.store import SqlStore, open_store

IS_LONG = os.environ.get("WINDLASS_TEST_LONG") == "1"
SHORT = settings(max_examples=120, stateful_step_count=50, derandomize=True)
LONG = settings(max_examples=1200, stateful_step_count=80)


@pytest.fixture
def bench(postgres_server: PostgresServer, tmp_path: Path) -> Iterator[Bench]:
    """Open one store of each kind for the whole test; examples empty them."""
    with ExitStack() as stack:
        runner = stack.enter_context(asyncio.Runner())
        dsn = stack.enter_context(fresh_postgres(postgres_server))
        connection = stack.enter_context(psycopg.connect(dsn, autocommit=True))
        stores = {"sqlite-memory": memory_store(Random(1)), "postgres": open_store(dsn, rng=Random(1))}
        if IS_LONG:
            url = stack.enter_context(fresh_url("sqlite-file", tmp_path, None))
            stores["sqlite-file"] = open_store(url, rng=Random(1))

        def empty() -> None:
            empty_postgres(connection)
            for store in stores.values():
                empty_sqlite(store.database)

        sides = [Side(name, store) for name, store in stores.items()]
        for store in stores.values():
            stack.callback(_close, runner, store)
        yield Bench(runner, sides, empty)


def _close(runner: asyncio.Runner, store: SqlStore) -> None:
    runner.run(store.aclose())


def test_stores_and_model_never_part(bench: Bench) -> None:
    machine = type("Machine", (LockStep,), {"bench": bench})
    form = settings(
        LONG if IS_LONG else SHORT, database=None, deadline=None, suppress_health_check=list(HealthCheck), print_blob=IS_LONG
    )
    run_state_machine_as_test(machine, settings=form)
