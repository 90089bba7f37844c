"""Which SQLite library a process uses, and why there is only one."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

import windlass
from windlass import ConfigError
from windlass.core.job import NewJob
from windlass.store import open_blocking_store
from windlass.store.sqlite_library import VARIABLE, sqlite_driver

has_two = pytest.mark.skipif(sqlite_driver is sqlite3, reason="there is only one SQLite library here: pysqlite3 is not installed")

PLAIN = """
import sqlite3
import sys

import sqlalchemy
from sqlalchemy.orm import Session

from windlass import Windlass, sqlite_driver

app = Windlass("sqlite:///jobs.db", accept_unknown=True)
app.migrate()
connection = sqlite3.connect("jobs.db")
with connection:
    connection.execute("create table orders (id integer)")
    connection.execute("insert into orders values (1)")
    app.enqueue_sync("pack", connection=connection)
connection.close()
engine = sqlalchemy.create_engine("sqlite:///jobs.db")
with Session(engine) as session:
    app.enqueue_sync("pack", connection=session)
    session.commit()
engine.dispose()
print(sqlite_driver.__name__, sum(count.jobs for count in app.counts_sync()))
app.close()
"""


def run(folder: Path, code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "error", "-c", code]
    return subprocess.run(
        command, cwd=folder, env=os.environ | environment, capture_output=True, text=True, timeout=60, check=False
    )


def test_plain_connections_are_taken_when_windlass_uses_the_standard_library_too(tmp_path: Path) -> None:
    done = run(tmp_path, PLAIN, **{VARIABLE: "sqlite3"})
    assert (done.returncode, done.stdout) == (0, "sqlite3 2\n"), done.stderr


def test_another_library_is_named_with_what_there_is(tmp_path: Path) -> None:
    done = run(tmp_path, "from windlass import sqlite_driver", **{VARIABLE: "apsw"})
    assert f"{VARIABLE}: must be sqlite3 or pysqlite3 (got 'apsw')" in done.stderr


@has_two
async def test_a_connection_of_another_library_is_refused_with_the_remedy(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    store = open_blocking_store(f"sqlite:///{path}", rng=Random(1))
    connection = sqlite3.connect(path)
    try:
        with pytest.raises(ConfigError) as refused:
            await store.enqueue_on(connection, [NewJob(task="pack")])
    finally:
        connection.close()
        await store.aclose()
    said = str(refused.value)
    assert "create_engine(url, module=windlass.sqlite_driver)" in said
    assert "WINDLASS_SQLITE_DRIVER=sqlite3" in said
    assert "\n" not in said


@has_two
@pytest.mark.parametrize("mode", ["wal", "delete"])
def test_two_libraries_in_one_process_lose_each_others_locks(tmp_path: Path, mode: str) -> None:
    """The reason for the refusal: were this to change, it could be lifted."""
    path = tmp_path / "jobs.db"
    mine = windlass.sqlite_driver.connect(path, isolation_level=None)
    mine.execute(f"pragma journal_mode = {mode}")
    mine.execute("create table orders (id integer)")
    mine.execute("begin immediate")
    mine.execute("insert into orders values (1)")
    code = "import sqlite3; sqlite3.connect('jobs.db', timeout=0, isolation_level=None).execute('begin immediate')"
    assert "database is locked" in run(tmp_path, code).stderr
    other = sqlite3.connect(path)
    other.execute("select id from orders").fetchall()
    other.close()
    assert run(tmp_path, code).returncode == 0, "the lock outlived the other library's close"
    mine.close()
