"""Enqueues in transactions of every driver that people's engines use."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import asyncpg
import pg8000.dbapi
import psycopg2
import pytest
import sqlalchemy
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy.ext.asyncio import create_async_engine

from tests.support.postgres_server import PostgresServer
from tests.support.stores import fresh_postgres
from windlass import ConfigError, DuplicateJob, InvalidPayload, Windlass
from windlass.sqlalchemy import windlass_on
from windlass.store.sqlite_library import sqlite_driver

PROGRAM = Path(__file__).with_name("callers_program.py")
TOLD = """\
rolled back 0 0
refused
before the commit 0
committed 9 1
by itself 10
picked up 77
"""


@pytest.fixture
def dsn(postgres_server: PostgresServer) -> Iterator[str]:
    with fresh_postgres(postgres_server) as made:
        yield made


def told(form: str, url: str, folder: Path, **environment: str) -> str:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("WINDLASS_")}
    done = subprocess.run(
        [sys.executable, "-W", "error", str(PROGRAM), form, url],
        cwd=folder,
        env={**environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize(("form", "driver"), [("session", "sqlite"), ("async session", "sqlite+aiosqlite")])
def test_an_engine_on_a_file_decides_with_pythons_own_library(form: str, driver: str, tmp_path: Path) -> None:
    assert told(form, f"{driver}:///shop.db", tmp_path) == TOLD


@pytest.mark.parametrize(
    ("form", "driver"),
    [
        ("session", "postgresql+psycopg"),
        ("session", "postgresql+psycopg2"),
        ("async session", "postgresql+psycopg"),
        ("async session", "postgresql+asyncpg"),
    ],
)
def test_an_engine_on_postgres_decides_with_any_driver(form: str, driver: str, dsn: str, tmp_path: Path) -> None:
    assert told(form, dsn.replace("postgresql", driver, 1), tmp_path) == TOLD


def pack_of(app: Windlass) -> Any:
    @app.task
    def pack(order: int) -> None: ...

    return pack


async def count(app: Windlass) -> int:
    return sum(each.jobs for each in await app.counts())


async def test_a_plain_asyncpg_connection_decides(dsn: str) -> None:
    connection = await asyncpg.connect(dsn)
    # As many applications have it: a text that is JSON already must not be written as JSON once more.
    await connection.set_type_codec("json", encoder=json.dumps, decoder=json.loads, schema="pg_catalog")
    async with Windlass(dsn) as app:
        on = pack_of(app).using(connection=connection, metadata={"by": "asyncpg"}, delay="1s")
        rolled_back = connection.transaction()
        await rolled_back.start()
        await on.enqueue(1)
        await rolled_back.rollback()
        assert await count(app) == 0
        async with connection.transaction():
            job = await on.enqueue(2)
            with pytest.raises(InvalidPayload):
                await on.enqueue("two")
            await on.using(unique_key="a").enqueue(3)
            with pytest.raises(DuplicateJob):
                await on.using(unique_key="a", on_conflict="reject").enqueue(3)
            await connection.execute("create temporary table orders (id integer)")
            assert await count(app) == 0
        assert (await app.get(job)).payload_json == '{"order":2}'
        assert (await app.get(job)).metadata_json == '{"by":"asyncpg"}'
        before = await count(app)
        # Outside of a transaction it is committed at once, as everything else is.
        await on.enqueue(4)
        assert await count(app) == before + 1
        with pytest.raises(ConfigError, match="is asynchronous"):
            on.enqueue_sync(5)
    await connection.close()


async def test_a_plain_psycopg2_connection_decides_and_is_not_for_event_loops(dsn: str) -> None:
    async with Windlass(dsn) as app:
        with closing(psycopg2.connect(dsn)) as connection:
            on = pack_of(app).using(connection=connection)
            on.enqueue_sync(1)
            connection.rollback()
            assert await count(app) == 0
            on.enqueue_sync(2)
            assert await count(app) == 0
            connection.commit()
            assert await count(app) == 1
            with pytest.raises(ConfigError, match="blocks; use enqueue_sync"):
                await on.enqueue(3)


async def test_a_plain_pg8000_connection_decides(dsn: str) -> None:
    where = conninfo_to_dict(dsn)
    host, port = str(where["host"]), str(where.get("port", 5432))
    place = {"unix_sock": f"{host}/.s.PGSQL.{port}"} if host.startswith("/") else {"host": host, "port": int(port)}
    secret = {"password": str(where["password"])} if "password" in where else {}
    async with Windlass(dsn) as app:
        with closing(
            pg8000.dbapi.connect(user=str(where["user"]), database=str(where["dbname"]), **place, **secret)
        ) as connection:
            on = pack_of(app).using(connection=connection)
            on.enqueue_sync(1)
            connection.rollback()
            assert await count(app) == 0
            on.using(unique_key="a", delay="1h").enqueue_sync(2)
            connection.commit()
            assert await count(app) == 1


@pytest.mark.parametrize("driver", ["asyncpg", "psycopg2"])
async def test_a_connection_of_any_driver_to_another_database_is_refused(driver: str, dsn: str, postgres_dsn: str) -> None:
    async with Windlass(dsn) as app:
        if driver == "asyncpg":
            stranger = await asyncpg.connect(postgres_dsn)
            with pytest.raises(ConfigError, match="another database"):
                await pack_of(app).using(connection=stranger).enqueue(1)
            assert await stranger.fetchval("select 1") == 1
            await stranger.close()
            return
        with closing(psycopg2.connect(postgres_dsn)) as stranger:
            with pytest.raises(ConfigError, match="another database"):
                pack_of(app).using(connection=stranger).enqueue_sync(1)
            with stranger.cursor() as cursor:
                cursor.execute("select 1")


PLAIN_AIOSQLITE = """
import asyncio

import aiosqlite

from windlass import ConfigError, Windlass
from windlass.sqlalchemy import windlass_on
from windlass.store.sqlite_library import use_standard_sqlite

use_standard_sqlite()
app = Windlass("sqlite:///shop.db")


@app.task
def pack(order: int) -> None: ...


async def main() -> None:
    app.migrate()
    async with app, aiosqlite.connect("shop.db") as connection:
        on = pack.using(connection=connection)
        await on.enqueue(1)
        await connection.rollback()
        await connection.execute("create table orders (id integer)")
        await connection.execute("insert into orders values (1)")
        await on.enqueue(2)
        print(sum(each.jobs for each in await app.counts()))
        await connection.commit()
        print(sum(each.jobs for each in await app.counts()))
        try:
            on.enqueue_sync(3)
        except ConfigError as error:
            print(error)


asyncio.run(main())
"""


def test_a_plain_aiosqlite_connection_decides(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PLAIN_AIOSQLITE],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    said = "connection: aiosqlite.core.Connection is asynchronous; use `await …enqueue()` instead of enqueue_sync()"
    assert done.stdout == f"0\n1\n{said}\n", done.stderr


WITHOUT_ASYNCIO = """
import sys
sys.modules["greenlet"] = None
from sqlalchemy import create_engine
from windlass.sqlalchemy import windlass_on
windlass_on(create_engine("sqlite:///shop.db")).migrate()
"""


def test_an_engine_that_blocks_needs_no_greenlet(tmp_path: Path) -> None:
    typed = [sys.executable, "-W", "error", "-c", WITHOUT_ASYNCIO]
    done = subprocess.run(typed, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


CHOOSING = """
import sqlalchemy
import windlass
from windlass.sqlalchemy import windlass_on
{before}
try:
    windlass_on(sqlalchemy.create_engine("sqlite:///shop.db"))
except windlass.ConfigError as error:
    print(error)
print(windlass.sqlite_driver.__name__)
"""


@pytest.mark.skipif(
    sqlite_driver.__name__ == "sqlite3", reason="there is only one SQLite library here: pysqlite3 is not installed"
)
@pytest.mark.parametrize(
    ("before", "named", "library"),
    [
        ("", None, "sqlite3"),
        ("windlass.sqlite_driver", None, "pysqlite3.dbapi2"),
        ("windlass.Windlass('sqlite:///other.db').migrate()", None, "pysqlite3.dbapi2"),
        ("", "pysqlite3", "pysqlite3.dbapi2"),
    ],
)
def test_the_library_of_the_engine_is_used_unless_another_one_is_in_use(
    before: str, named: str | None, library: str, tmp_path: Path
) -> None:
    environment = {} if named is None else {"WINDLASS_SQLITE_DRIVER": named}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", CHOOSING.format(before=before)],
        cwd=tmp_path,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    *refusal, used = done.stdout.splitlines()
    assert used == library, done.stderr
    assert [line for line in refusal if "set WINDLASS_SQLITE_DRIVER=sqlite3" in line] == refusal
    assert bool(refusal) is (library != "sqlite3")


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///file:shop.db?uri=true"])
def test_an_engine_whose_database_cannot_be_shared_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="must be a file"):
        windlass_on(sqlalchemy.create_engine(url, module=sqlite_driver))


def test_the_url_of_an_engine_loses_what_is_its_drivers_alone() -> None:
    engine = create_async_engine(
        "postgresql+asyncpg://ann:s%40cret@db.example.org/shop?ssl=require&prepared_statement_cache_size=0"
    )
    app = windlass_on(engine, name="shop")
    assert app.settings.database_url == "postgresql://ann:s%40cret@db.example.org/shop?sslmode=require"
    assert app.name == "shop"
