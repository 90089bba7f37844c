"""Enqueue in the caller's own transaction: visible iff it commits."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row

from tests.store.builders import a_job, all_jobs
from tests.support.postgres_server import PostgresServer
from tests.support.stores import fresh_postgres, fresh_url
from windlass.core.blocking import run
from windlass.errors import ConfigError, DuplicateJob
from windlass.store import SqlStore, open_blocking_store, open_store
from windlass.store.sqlite_library import sqlite_driver as driver

JOBS = [a_job(unique_key="k"), a_job(), a_job(unique_key="k")]


@pytest.fixture
def dsn(postgres_server: PostgresServer) -> Iterator[str]:
    with fresh_postgres(postgres_server) as found:
        yield found


@pytest.fixture
def path(tmp_path: Path) -> Iterator[Path]:
    with fresh_url("sqlite-file", tmp_path, None) as url:
        yield Path(url.removeprefix("sqlite:///"))


def jobs_in(store: SqlStore) -> int:
    return sum(count.jobs for count in run(store.count_jobs()))


@pytest.mark.parametrize(("ending", "expected"), [("commit", 2), ("rollback", 0)])
def test_a_psycopg_connection(dsn: str, ending: str, expected: int) -> None:
    store = open_blocking_store(dsn, rng=Random(1))
    with psycopg.connect(dsn) as connection:
        answers = run(store.enqueue_on(connection, JOBS))
        assert [answer.is_duplicate for answer in answers] == [False, False, True]
        assert jobs_in(store) == 0
        getattr(connection, ending)()
    assert jobs_in(store) == expected
    run(store.aclose())


@pytest.mark.parametrize(("ending", "expected"), [("commit", 2), ("rollback", 0)])
async def test_an_asynchronous_psycopg_connection(dsn: str, ending: str, expected: int) -> None:
    store = open_store(dsn, rng=Random(1))
    async with await psycopg.AsyncConnection.connect(dsn) as connection:
        await store.enqueue_on(connection, JOBS)
        await getattr(connection, ending)()
    assert len(await all_jobs(store)) == expected
    await store.aclose()


@pytest.mark.parametrize("isolation_level", ["", None, "IMMEDIATE"])
@pytest.mark.parametrize(("ending", "expected"), [("commit", 2), ("rollback", 0)])
async def test_a_sqlite_connection(path: Path, isolation_level: str | None, ending: str, expected: int) -> None:
    store = open_store(f"sqlite:///{path}", rng=Random(1))
    connection = driver.connect(str(path), isolation_level=isolation_level)
    connection.row_factory = driver.Row
    if isolation_level is None:
        connection.execute("begin")
    await store.enqueue_on(connection, JOBS)
    connection.execute(ending)
    connection.close()
    assert len(await all_jobs(store)) == expected
    await store.aclose()


def test_an_autocommit_connection_commits_at_once(dsn: str, path: Path) -> None:
    rivals = (
        (dsn, psycopg.connect(dsn, autocommit=True)),
        (f"sqlite:///{path}", driver.connect(str(path), isolation_level=None)),
    )
    for url, connection in rivals:
        store = open_blocking_store(url, rng=Random(1))
        run(store.enqueue_on(connection, [a_job()]))
        assert jobs_in(store) == 1
        run(store.enqueue([a_job()]))
        connection.close()
        run(store.aclose())


@pytest.mark.skipif(not hasattr(driver.Connection, "autocommit"), reason="the driver has no such setting before Python 3.12")
@pytest.mark.parametrize("begins", [False, True])
def test_a_sqlite_connection_with_the_newer_autocommit_setting_commits_at_once_unless_its_owner_began(
    path: Path, *, begins: bool
) -> None:
    store = open_blocking_store(f"sqlite:///{path}", rng=Random(1))
    connection: Any = driver.connect(str(path), autocommit=True)
    if begins:
        connection.execute("begin")
    run(store.enqueue_on(connection, [a_job()]))
    assert (connection.in_transaction, jobs_in(store)) == ((True, 0) if begins else (False, 1))
    if begins:
        connection.execute("commit")
    connection.close()
    assert jobs_in(store) == 1
    run(store.aclose())


@pytest.mark.skipif(not hasattr(driver.Connection, "autocommit"), reason="the driver has no such setting before Python 3.12")
@pytest.mark.parametrize(("ending", "expected"), [("commit", 2), ("rollback", 0)])
def test_a_sqlite_connection_that_is_always_in_a_transaction(path: Path, ending: str, expected: int) -> None:
    store = open_blocking_store(f"sqlite:///{path}", rng=Random(1))
    connection: Any = driver.connect(str(path), autocommit=False)
    run(store.enqueue_on(connection, JOBS))
    assert jobs_in(store) == 0
    getattr(connection, ending)()
    connection.close()
    assert jobs_in(store) == expected
    run(store.aclose())


def test_a_connection_with_rows_of_its_own_kind(dsn: str) -> None:
    store = open_blocking_store(dsn, rng=Random(1))
    with psycopg.connect(dsn, row_factory=dict_row) as connection:
        run(store.enqueue_on(connection, JOBS))
    assert jobs_in(store) == 2
    run(store.aclose())


def test_the_callers_own_rows_and_the_jobs_share_one_fate(path: Path) -> None:
    store = open_blocking_store(f"sqlite:///{path}", rng=Random(1))
    connection: Any = driver.connect(str(path))
    connection.execute("create table orders (id integer)")
    connection.execute("insert into orders values (1)")
    run(store.enqueue_on(connection, [a_job()]))
    connection.rollback()
    assert connection.execute("select count(*) from orders").fetchone() == (0,)
    assert jobs_in(store) == 0
    connection.close()
    run(store.aclose())


def test_a_refused_enqueue_leaves_the_callers_transaction_usable(dsn: str, path: Path) -> None:
    for url, connection in ((dsn, psycopg.connect(dsn)), (f"sqlite:///{path}", driver.connect(str(path)))):
        store = open_blocking_store(url, rng=Random(1))
        connection.execute("create table orders (id integer)")
        run(store.enqueue_on(connection, [a_job(unique_key="k")]))
        with pytest.raises(DuplicateJob):
            run(store.enqueue_on(connection, [a_job(), a_job(unique_key="k", on_conflict="reject")]))
        connection.execute("insert into orders values (1)")
        connection.commit()
        assert jobs_in(store) == 1
        connection.close()
        run(store.aclose())


def test_a_connection_to_another_database_is_refused(
    dsn: str, path: Path, tmp_path: Path, postgres_server: PostgresServer
) -> None:
    with fresh_postgres(postgres_server) as other, psycopg.connect(other) as connection:
        store = open_blocking_store(dsn, rng=Random(1))
        with pytest.raises(ConfigError, match="another database"):
            run(store.enqueue_on(connection, [a_job()]))
        run(store.aclose())
    store = open_blocking_store(f"sqlite:///{path}", rng=Random(1))
    for target in (str(tmp_path / "other.db"), ":memory:"):
        stranger = driver.connect(target)
        with pytest.raises(ConfigError, match="not to"):
            run(store.enqueue_on(stranger, [a_job()]))
        stranger.close()
    run(store.aclose())


def test_a_database_without_our_tables_is_refused(dsn: str, postgres_dsn: str) -> None:
    store = open_blocking_store(dsn, rng=Random(1))
    with psycopg.connect(postgres_dsn) as connection:
        with pytest.raises(ConfigError, match="another database"):
            run(store.enqueue_on(connection, [a_job()]))
        assert connection.execute("select 1").fetchone() == (1,)
    run(store.aclose())


def test_a_connection_of_the_other_sqlite_library_is_refused(path: Path) -> None:
    import sqlite3  # noqa: PLC0415 - the library Windlass does not use here

    store = open_blocking_store(f"sqlite:///{path}", rng=Random(1))
    if driver.__name__ != "sqlite3":
        stranger = sqlite3.connect(path)
        with pytest.raises(ConfigError, match=r"a connection of .* is needed"):
            run(store.enqueue_on(stranger, [a_job()]))
        stranger.close()
    run(store.aclose())
