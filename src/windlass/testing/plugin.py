"""Fixtures for pytest; loaded in every run where Windlass is installed, so it imports nothing until one is used."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from windlass.app import Windlass
    from windlass.testing.clock import FakeClock

_OPTION = "windlass_app"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add where to find the application."""
    parser.addini(_OPTION, "the application the windlass_app fixture binds to a private database, as in shop.jobs:app")


@pytest.fixture
def windlass_clock() -> FakeClock:
    """Return a clock that stands at this moment until the test moves it."""
    from datetime import UTC, datetime  # noqa: PLC0415 - only where the fixture is used

    from windlass.testing.clock import FakeClock  # noqa: PLC0415 - as above

    return FakeClock(datetime.now(UTC))  # noqa: TID251 - the moment the code under test sees


@pytest.fixture
def windlass_database_url() -> str:
    """Return where the jobs of one test live; override it for a file or PostgreSQL."""
    return "sqlite://"


@pytest.fixture
def windlass_application(request: pytest.FixtureRequest) -> Windlass:
    """Return the application under test: the one the ini file names; override it to give another."""
    target = request.config.getini(_OPTION)
    if not target:
        raise pytest.UsageError(
            f"which application? Say `{_OPTION} = shop.jobs:app` in pytest's ini file, or override fixture windlass_application"
        )
    from pkgutil import resolve_name  # noqa: PLC0415 - only where the fixture is used

    application: Windlass = resolve_name(target)
    return application


@pytest.fixture
def windlass_app(windlass_application: Windlass, windlass_database_url: str, windlass_clock: FakeClock) -> Iterator[Windlass]:
    """Open the application on a database of this test's own, on the time of `windlass_clock`."""
    from windlass.testing.fresh_app import fresh  # noqa: PLC0415 - only where the fixture is used

    with fresh(windlass_application, windlass_database_url, clock=windlass_clock) as app:
        yield app
