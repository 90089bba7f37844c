from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from tests.support import postgres_server as launcher
from tests.support.postgres_server import DSN_VARIABLE, Account, OwnPostgresServer, PostgresServer, PostgresUnavailable
from tests.support.postgres_watchdog import is_running, server_pid

ROOT = Path(__file__).resolve().parents[2]
# Prints the DSN, then the id of a forked child that holds everything its parent held open.
PARENT = """
import os, time
from tests.support.postgres_server import running_postgres
with running_postgres() as server:
    child = os.fork()
    if child:
        print(server.dsn, child, sep="\\n", flush=True)
    time.sleep(60)
    os._exit(0)
"""


@pytest.fixture
def own_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[PostgresServer]:
    monkeypatch.delenv(DSN_VARIABLE, raising=False)
    with launcher.running_postgres() as server:
        yield server


def folder_of(dsn: str) -> Path:
    return Path(str(conninfo_to_dict(dsn)["host"]))


def process_of(folder: Path) -> int:
    pid = server_pid(folder)
    assert pid is not None
    return pid


def holds_within(seconds: float, condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.05)
    return condition()


def count_tables(dsn: str) -> int:
    with psycopg.connect(dsn) as connection:
        row = connection.execute("select count(*) from pg_tables where schemaname = 'public'").fetchone()
    assert row is not None
    return int(row[0])


def test_server_answers_and_is_recent_enough(postgres_server: PostgresServer) -> None:
    with psycopg.connect(postgres_server.dsn) as connection:
        assert connection.info.server_version >= 150000


def test_databases_are_isolated(postgres_server: PostgresServer, postgres_dsn: str) -> None:
    with psycopg.connect(postgres_dsn) as connection:
        connection.execute("create table here (id int)")
    other = postgres_server.create_database("windlass_test_isolation")
    try:
        assert (count_tables(postgres_dsn), count_tables(other)) == (1, 0)
    finally:
        postgres_server.drop_database("windlass_test_isolation")


def test_a_database_can_be_copied_from_a_template(postgres_server: PostgresServer, postgres_dsn: str) -> None:
    with psycopg.connect(postgres_dsn) as connection:
        connection.execute("create table here (id int)")
    template = str(conninfo_to_dict(postgres_dsn)["dbname"])
    copy = postgres_server.create_database("windlass_test_copy", template=template)
    try:
        assert count_tables(copy) == 1
    finally:
        postgres_server.drop_database("windlass_test_copy")


def test_dropping_a_database_disconnects_its_users(postgres_server: PostgresServer) -> None:
    connection = psycopg.connect(postgres_server.create_database("windlass_test_drop"))
    postgres_server.drop_database("windlass_test_drop")
    with pytest.raises(psycopg.OperationalError):
        connection.execute("select 1")
    connection.close()


@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_an_outage_keeps_data_and_dsn(own_server: PostgresServer, mode: Literal["fast", "immediate"]) -> None:
    with psycopg.connect(own_server.dsn) as connection:
        connection.execute("create table kept (id int)")
    own_server.stop(mode)
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(own_server.dsn)
    own_server.start()
    assert count_tables(own_server.dsn) == 1


def test_nothing_is_left_after_the_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(DSN_VARIABLE, raising=False)
    with launcher.running_postgres() as server:
        folder = folder_of(server.dsn)
        pid = process_of(folder)
    assert not is_running(pid)
    assert not folder.exists()


def test_killed_parent_leaves_no_server_and_no_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(DSN_VARIABLE, raising=False)
    with subprocess.Popen([sys.executable, "-c", PARENT], cwd=ROOT, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        folder, child = folder_of(parent.stdout.readline().strip()), int(parent.stdout.readline())
        pid = process_of(folder)
        parent.kill()
        try:
            assert holds_within(15, lambda: not folder.exists() and not is_running(pid))
        finally:
            os.kill(child, signal.SIGKILL)


def test_copied_programs_work_where_the_account_cannot_reach_the_package() -> None:
    account = Account.choose()
    with launcher.private_folder(account) as folder:
        server = OwnPostgresServer(folder, account, launcher.copy_install(launcher.find_install(), account, folder) / "bin")
        server.create()
        server.start()
        assert count_tables(server.dsn) == 0


def test_missing_programs_are_an_error_with_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(DSN_VARIABLE, raising=False)
    monkeypatch.setattr(launcher, "INSTALLS", ("absent",))
    with pytest.raises(PostgresUnavailable, match=r"dev\.py test"), launcher.running_postgres():
        pass


def test_the_variable_names_another_server(postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DSN_VARIABLE, postgres_server.dsn)
    with launcher.running_postgres() as server:
        assert count_tables(server.dsn) == 0
        with pytest.raises(RuntimeError, match=DSN_VARIABLE):
            server.stop()
        with pytest.raises(RuntimeError, match=DSN_VARIABLE):
            server.start()


def test_urls_carry_every_parameter() -> None:
    given = {"host": "/a b/c", "user": "me@home", "password": "p&w=+/%", "dbname": "x/y", "port": "5433"}
    assert conninfo_to_dict(launcher.url_of(given)) == given
