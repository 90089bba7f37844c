"""Where wake-ups are heard is a setting."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.support.postgres_server import PostgresServer
from tests.support.stores import fresh_url
from tests.worker.living import until
from windlass import ConfigError, Windlass
from windlass.config import load
from windlass.worker.program import WorkerOptions


@pytest.fixture
def postgres_url(tmp_path: Path, postgres_server: PostgresServer) -> Iterator[str]:
    with fresh_url("postgres", tmp_path, postgres_server) as made:
        yield made


async def test_a_worker_hears_on_the_connection_that_the_environment_names(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ears = f"{postgres_url}{'&' if '?' in postgres_url else '?'}application_name=ears"
    monkeypatch.setenv("WINDLASS_LISTEN_URL", ears)
    async with Windlass(postgres_url) as app, (await app.store()).wakeups as wakeups:
        await until(lambda: wakeups.is_listening, "wake-ups to be heard")
        async with await psycopg.AsyncConnection.connect(postgres_url) as connection:
            [row] = await (
                await connection.execute("select count(*) from pg_stat_activity where application_name = 'ears'")
            ).fetchall()
        assert row == (1,)


def test_sqlite_has_none(tmp_path: Path) -> None:
    app = Windlass(f"sqlite:///{tmp_path / 'w.db'}", listen_url="postgresql://h/x")
    with pytest.raises(ConfigError, match="listen_url: only PostgreSQL has one"):
        app.sources.get_sync("x")


def test_the_grace_is_half_a_minute_everywhere(tmp_path: Path) -> None:
    settings = load({}, environ={}, file=tmp_path / "absent.toml")
    assert settings.grace == WorkerOptions().grace
    assert settings.grace.total_seconds() == 30
