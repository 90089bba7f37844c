"""Databases that have been at work, and empty ones."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.moving.jobs_app import work_through
from tests.support.stores import fresh_postgres, migrate_sqlite

FROM_SQLITE = pytest.mark.parametrize("route", ["sqlite-postgres"], indirect=True)
FROM_POSTGRES = pytest.mark.parametrize("route", ["postgres-sqlite"], indirect=True)


class Route(NamedTuple):
    """From where to where."""

    source: str
    target: str


@pytest.fixture(params=["sqlite-postgres", "postgres-sqlite"])
def route(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Route]:
    """Give a database with jobs of every kind, and the URL of one that does not exist yet or is empty."""
    with ExitStack() as stack:
        postgres = stack.enter_context(fresh_postgres(request.getfixturevalue("postgres_server")))
        lite = f"sqlite:///{tmp_path / 'jobs.db'}"
        if request.param == "sqlite-postgres":
            migrate_sqlite(tmp_path / "jobs.db")
            route = Route(lite, postgres)
        else:
            route = Route(postgres, lite)
        work_through(route.source)
        yield route
