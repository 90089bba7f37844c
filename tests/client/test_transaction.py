from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.support.postgres_server import PostgresServer
from tests.support.stores import fresh_postgres
from windlass import ConfigError, Enqueued, Windlass
from windlass.client.task import Task
from windlass.store.sqlite_library import sqlite_driver as driver


def declared(app: Windlass) -> Task[[int], None]:
    @app.task
    def note(number: int) -> None: ...

    return note


async def count(app: Windlass) -> int:
    return sum(each.jobs for each in await app.counts())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "jobs.db"


async def test_a_sqlite_connection_decides(path: Path) -> None:
    async with Windlass(f"sqlite:///{path}") as app:
        note = declared(app)
        connection = driver.connect(path)
        on = note.using(connection=connection)
        await app.counts()
        on.enqueue_sync(1)
        connection.rollback()
        assert await count(app) == 0
        await on.enqueue(2)
        on.enqueue_many_sync([{"number": 3}])
        assert await count(app) == 0
        connection.commit()
        connection.close()
        assert await count(app) == 2


def test_an_application_may_be_opened_inside_a_transaction(path: Path) -> None:
    Windlass(f"sqlite:///{path}").migrate()
    connection = driver.connect(path)
    connection.execute("create table orders (number integer)")
    connection.execute("insert into orders values (1)")
    with Windlass(f"sqlite:///{path}") as app:
        declared(app).using(connection=connection).enqueue_sync(1)
        connection.commit()
        connection.close()
        assert sum(each.jobs for each in app.counts_sync()) == 1


async def test_a_psycopg_connection_decides(postgres_server: PostgresServer) -> None:
    with fresh_postgres(postgres_server) as dsn:
        async with Windlass(dsn) as app:
            note = declared(app)
            with psycopg.connect(dsn) as connection:
                on = note.using(connection=connection)
                on.enqueue_sync(1)
                connection.rollback()
                assert await count(app) == 0
                on.enqueue_sync(2)
                app.enqueue_sync("note", {"number": 3}, connection=connection)
                assert await count(app) == 0
            assert await count(app) == 2


async def test_an_asynchronous_psycopg_connection_decides(postgres_server: PostgresServer) -> None:
    with fresh_postgres(postgres_server) as dsn:
        async with Windlass(dsn) as app, await psycopg.AsyncConnection.connect(dsn) as connection:
            note = declared(app)
            on = note.using(connection=connection)
            await on.enqueue(1)
            await connection.rollback()
            assert await count(app) == 0
            await on.enqueue(2)
            await app.enqueue_jobs([note.job(3)], connection)
            assert await count(app) == 0
            await connection.commit()
            assert await count(app) == 2


async def test_the_two_kinds_of_psycopg_connections_are_not_mixed_up(postgres_server: PostgresServer) -> None:
    with fresh_postgres(postgres_server) as dsn:
        async with Windlass(dsn) as app, await psycopg.AsyncConnection.connect(dsn) as later:
            note = declared(app)
            with psycopg.connect(dsn) as now:
                with pytest.raises(ConfigError, match=r"blocks; use enqueue_sync\(\)"):
                    await note.using(connection=now).enqueue(1)
                with pytest.raises(ConfigError, match="is asynchronous"):
                    note.using(connection=later).enqueue_sync(1)


async def test_a_connection_to_another_database_is_refused(
    postgres_server: PostgresServer, postgres_dsn: str, path: Path, tmp_path: Path
) -> None:
    with fresh_postgres(postgres_server) as dsn:
        async with Windlass(dsn) as app:
            with psycopg.connect(postgres_dsn) as other, pytest.raises(ConfigError, match="another database"):
                declared(app).using(connection=other).enqueue_sync(1)
    async with Windlass(f"sqlite:///{path}") as app:
        stranger = driver.connect(tmp_path / "other.db")
        with pytest.raises(ConfigError, match=r"other\.db"):
            await declared(app).using(connection=stranger).enqueue(1)
        stranger.close()


@pytest.mark.skipif(driver is sqlite3.dbapi2, reason="Windlass uses the standard library's SQLite here")
async def test_a_connection_of_another_sqlite_library_is_refused_with_the_remedy(path: Path) -> None:
    async with Windlass(f"sqlite:///{path}") as app:
        connection = sqlite3.connect(path)
        with pytest.raises(ConfigError, match=r"open it with windlass\.sqlite_driver"):
            await declared(app).using(connection=connection).enqueue(1)
        connection.close()


async def test_what_is_no_connection_is_refused(path: Path) -> None:
    async with Windlass(f"sqlite:///{path}") as app:
        note = declared(app)
        for odd in ("sqlite:///jobs.db", object(), 5):
            with pytest.raises(ConfigError, match="connection or session is needed, not builtins"):
                await note.using(connection=odd).enqueue(1)


async def test_hooks_hear_of_jobs_in_a_callers_transaction(path: Path) -> None:
    heard: list[Any] = []
    async with Windlass(f"sqlite:///{path}") as app:
        app.on("enqueue")(heard.append)
        connection = driver.connect(path)
        await app.counts()
        await declared(app).using(connection=connection).enqueue(1)
        connection.rollback()
        connection.close()
    assert len(heard) == 1


class _Sqlalchemy:
    """What SQLAlchemy's objects look like from outside, where it is not installed."""

    @staticmethod
    def named(name: str, **attributes: Any) -> Any:
        return type(name, (), {**attributes, "__module__": "sqlalchemy.orm.session"})()


async def test_sessions_are_unwrapped_down_to_the_drivers_connection(path: Path) -> None:
    async with Windlass(f"sqlite:///{path}") as app:
        await app.counts()
        raw = driver.connect(path)
        proxy = _Sqlalchemy.named("_ConnectionFairy", driver_connection=raw)
        connection = _Sqlalchemy.named("Connection", connection=proxy)
        session = _Sqlalchemy.named("Session", connection=lambda _self: connection)

        async def get_raw_connection(_self: object) -> Any:
            return proxy

        later = _Sqlalchemy.named("AsyncConnection", get_raw_connection=get_raw_connection)

        async def connection_of(_self: object) -> Any:
            return later

        note = declared(app)
        for held in (session, connection, proxy):
            note.using(connection=held).enqueue_sync(1)
        for held in (later, _Sqlalchemy.named("AsyncSession", connection=connection_of)):
            await note.using(connection=held).enqueue(1)
        assert await count(app) == 0
        raw.commit()
        raw.close()
        assert await count(app) == 5


@pytest.fixture
def sqlalchemy() -> Any:
    return pytest.importorskip("sqlalchemy", reason="SQLAlchemy is not installed: its sessions are NOT tested here")


async def test_an_sqlalchemy_session_decides(sqlalchemy: Any, postgres_server: PostgresServer) -> None:
    with fresh_postgres(postgres_server) as dsn:
        engine = sqlalchemy.create_engine(dsn.replace("postgresql://", "postgresql+psycopg://", 1))
        orm = pytest.importorskip("sqlalchemy.orm")
        async with Windlass(dsn) as app:
            note = declared(app)
            with orm.Session(engine) as session:
                note.using(connection=session).enqueue_sync(1)
                session.rollback()
                assert await count(app) == 0
                note.using(connection=session).enqueue_sync(2)
                assert await count(app) == 0
                session.commit()
            with engine.begin() as connection:
                note.using(connection=connection).enqueue_sync(3)
            assert await count(app) == 2
        engine.dispose()


async def test_an_sqlalchemy_session_on_a_file_decides(sqlalchemy: Any, path: Path) -> None:
    orm = pytest.importorskip("sqlalchemy.orm")
    engine = sqlalchemy.create_engine(f"sqlite:///{path}", module=driver)
    async with Windlass(f"sqlite:///{path}") as app:
        note = declared(app)
        await app.counts()
        with orm.Session(engine) as session:
            note.using(connection=session).enqueue_sync(1)
            session.rollback()
            note.using(connection=session).enqueue_sync(2)
            session.commit()
        assert await count(app) == 1
    engine.dispose()


async def test_an_asynchronous_sqlalchemy_session_decides(sqlalchemy: Any, postgres_server: PostgresServer) -> None:
    asyncio = pytest.importorskip("sqlalchemy.ext.asyncio", reason=f"{sqlalchemy} without asyncio")
    pytest.importorskip("greenlet")
    with fresh_postgres(postgres_server) as dsn:
        engine = asyncio.create_async_engine(dsn.replace("postgresql://", "postgresql+psycopg://", 1))
        async with Windlass(dsn) as app:
            note = declared(app)
            async with asyncio.AsyncSession(engine) as session:
                assert isinstance(await note.using(connection=session).enqueue(1), Enqueued)
                await session.rollback()
                assert await count(app) == 0
                await note.using(connection=session).enqueue(2)
                await session.commit()
            assert await count(app) == 1
        await engine.dispose()
