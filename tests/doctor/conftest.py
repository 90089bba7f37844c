"""A database of its own for each test, and what the doctor finds in it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.support.raw import execute
from tests.support.stores import fresh_postgres, fresh_url
from windlass import Windlass
from windlass.core.finding import Examination, Finding
from windlass.doctor import examine
from windlass.store import Store
from windlass.testing import FakeClock

ON_SQLITE = pytest.mark.parametrize("url", ["sqlite-file"], indirect=True)
ON_POSTGRES = pytest.mark.parametrize("url", ["postgres"], indirect=True)


class Patient:
    """An application and the database that is examined through it."""

    def __init__(self, app: Windlass) -> None:
        self.app = app

    async def examined(self, **options: Any) -> Examination:
        return await self.app.doctor(**options)

    async def finding(self, check: str, *, at: datetime | None = None, **options: Any) -> Finding:
        """Return what one check finds, now or at a moment of the database's."""
        store = await self.app.store()
        seen = store if at is None else store.at(FakeClock(at))

        async def opened() -> Store:
            return seen

        found = await examine(opened, self.app.settings, options)  # type: ignore[arg-type]  # the names are those of the options
        [one] = [one for one in found.findings if one.check == check]
        return one

    async def execute(self, sql: str) -> list[tuple[Any, ...]]:
        return await execute(await self.app.store(), sql)


@pytest.fixture(params=["sqlite-file", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Give the URL of a database that nobody else gets: tests break its schema."""
    with ExitStack() as stack:
        if request.param == "postgres":
            yield stack.enter_context(fresh_postgres(request.getfixturevalue("postgres_server")))
        else:
            yield stack.enter_context(fresh_url(request.param, tmp_path, None))


@pytest.fixture
async def patient(url: str) -> AsyncIterator[Patient]:
    async with Windlass(url, accept_unknown=True) as app:
        yield Patient(app)
