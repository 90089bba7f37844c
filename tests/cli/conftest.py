"""Commands on a database of their own."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests.support.stores import fresh_url
from windlass import Windlass
from windlass.cli.main import main

Command = Callable[..., Result]
ON_SQLITE = pytest.mark.parametrize("url", ["sqlite-file"], indirect=True)


@pytest.fixture(params=["sqlite-file"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Give the URL of a fresh, migrated database; tests ask for PostgreSQL where it matters."""
    server = request.getfixturevalue("postgres_server") if request.param == "postgres" else None
    with fresh_url(request.param, tmp_path, server) as made:
        yield made


@pytest.fixture
def windlass(url: str) -> Command:
    """Give the command line; it answers with the exit code asked for, or the test fails."""

    def call(*arguments: str, code: int = 0, stdin: str | None = None) -> Result:
        result = CliRunner().invoke(main, [*arguments], env={"WINDLASS_DATABASE_URL": url}, input=stdin)
        assert result.exit_code == code, (result.output, result.exception)
        return result

    return call


@pytest.fixture
def ask(windlass: Command) -> Callable[..., Any]:
    """Give the command line's answers in JSON."""
    return lambda *arguments, **options: json.loads(windlass(*arguments, "--json", **options).stdout)


@pytest.fixture
def app(url: str) -> Iterator[Windlass]:
    with Windlass(url) as made:
        yield made
