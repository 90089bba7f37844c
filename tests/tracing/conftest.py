"""The real SDK of OpenTelemetry, writing to memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.stores import fresh_url
from tests.tracing.recorded import Recorded, recorded_here


@pytest.fixture(params=["sqlite-file", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    server = request.getfixturevalue("postgres_server") if request.param == "postgres" else None
    with fresh_url(request.param, tmp_path, server) as made:
        yield made


@pytest.fixture
def recorded() -> Iterator[Recorded]:
    """Record what is traced and measured from here on."""
    found = recorded_here()
    found.clear()
    yield found
    found.clear()
