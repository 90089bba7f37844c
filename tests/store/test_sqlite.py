"""What only a SQLite file can do: lock, fork, and lose its callers."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from tests.store.builders import a_job
from tests.support.stores import migrate_sqlite
from windlass.core.blocking import run
from windlass.errors import StoreUnavailable
from windlass.store import open_blocking_store, open_store
from windlass.store.calls import reads, work
from windlass.store.sqlite import Sqlite
from windlass.store.sqlite_library import sqlite_driver as driver


@pytest.fixture
def rollback_journal(tmp_path: Path) -> Iterator[Path]:
    """Give a file with the journal that most systems' SQLite gets."""
    path = tmp_path / "journal.db"
    connection = driver.connect(str(path))
    connection.execute("pragma journal_mode = delete")
    connection.execute("create table theirs (id integer)")
    connection.commit()
    connection.close()
    migrate_sqlite(path)
    yield path
    connection = driver.connect(str(path))
    assert connection.execute("pragma journal_mode").fetchone() == ("delete",)
    connection.close()


def test_readers_and_openers_wait_for_a_writer(rollback_journal: Path) -> None:
    url = f"sqlite:///{rollback_journal}"
    is_done = threading.Event()

    def write() -> None:
        store = open_blocking_store(url, rng=Random(1))
        while not is_done.is_set():
            run(store.enqueue([a_job() for _ in range(50)]))
        run(store.aclose())

    writer = threading.Thread(target=write)
    writer.start()
    reader = open_blocking_store(url, rng=Random(2))
    for _ in range(200):
        run(reader.count_jobs())
    for seed in range(10):
        run(open_blocking_store(url, rng=Random(seed)).aclose())
    is_done.set()
    writer.join()
    run(reader.aclose())


def test_callers_that_give_up_do_not_stop_the_writer(tmp_path: Path) -> None:
    path = tmp_path / "cancel.db"
    migrate_sqlite(path)
    database = Sqlite(str(path), Random(1))
    rival = driver.connect(str(path), isolation_level=None)
    for _ in range(3):
        rival.execute("begin immediate")
        first = database.submit(work.enqueue([a_job()]))
        given_up = [database.submit(work.enqueue([a_job()])) for _ in range(2)]
        for future in given_up:
            future.cancel()
        rival.execute("commit")
        assert len(first.result(10)) == 1
    assert len(database.submit(work.enqueue([a_job()])).result(10)) == 1
    rival.close()
    database.close()
    with pytest.raises(StoreUnavailable, match="closed"):
        database.submit(work.clock())


def test_one_bad_call_does_not_harm_those_it_was_merged_with(tmp_path: Path) -> None:
    path = tmp_path / "merged.db"
    migrate_sqlite(path)
    database = Sqlite(str(path), Random(1))
    rival = driver.connect(str(path), isolation_level=None)
    rival.execute("begin immediate")
    waiting = [database.submit(work.enqueue([a_job()]))]
    refused = database.submit(work.enqueue([a_job(unique_key="k"), a_job(unique_key="k", on_conflict="reject")]))
    waiting.append(database.submit(work.enqueue([a_job()])))
    rival.execute("commit")
    with pytest.raises(Exception, match="already has job"):
        refused.result(10)
    assert all(future.result(10) for future in waiting)
    assert sum(count.jobs for count in database.run_sync(reads.count_jobs())) == 2
    rival.close()
    database.close()


def test_the_first_error_is_the_one_that_is_told(tmp_path: Path) -> None:
    path = tmp_path / "error.db"
    migrate_sqlite(path)
    database = Sqlite(str(path), Random(1))

    def work(connection: object) -> None:
        connection.execute("rollback")  # type: ignore[attr-defined]
        raise driver.OperationalError("disk I/O error")

    with pytest.raises(StoreUnavailable, match="disk I/O error"):
        database.run_script(work)
    assert database.run_sync(reads.count_jobs()) == []
    database.close()


def test_a_forked_child_is_told_to_open_its_own(tmp_path: Path) -> None:
    path = tmp_path / "fork.db"
    migrate_sqlite(path)
    store = open_blocking_store(f"sqlite:///{path}", rng=Random(1))
    child = os.fork()
    if child == 0:
        try:
            run(store.count_jobs())
        except StoreUnavailable:
            os._exit(0)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    run(store.aclose())


async def test_a_cancelled_await_leaves_the_store_usable(tmp_path: Path) -> None:
    path = tmp_path / "await.db"
    migrate_sqlite(path)
    store = open_store(f"sqlite:///{path}", rng=Random(1))
    rival = driver.connect(str(path), isolation_level=None)
    rival.execute("begin immediate")
    waiting = [asyncio.create_task(store.enqueue([a_job()])) for _ in range(3)]
    await asyncio.sleep(0)
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    rival.execute("commit")
    rival.close()
    assert len(await store.enqueue([a_job()])) == 1
    await store.aclose()


def test_an_affected_build_says_so_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("windlass.store.sqlite.has_wal_reset_bug", lambda _: True)
    path = tmp_path / "old.db"
    with caplog.at_level(logging.WARNING, "windlass.store"):
        migrate_sqlite(path)
    assert [record.message.split(";")[0] for record in caplog.records] == [
        f"SQLite {driver.sqlite_version} has the WAL-reset bug: {path} keeps a rollback journal"
    ]
    connection = driver.connect(str(path))
    assert connection.execute("pragma journal_mode").fetchone() == ("delete",)
    connection.close()


@pytest.mark.parametrize("is_replaced", [False, True])
def test_a_file_that_was_removed_or_replaced_is_not_written_any_more(tmp_path: Path, *, is_replaced: bool) -> None:
    path = tmp_path / "jobs.db"
    migrate_sqlite(path)
    store = open_blocking_store(f"sqlite:///{path}", rng=Random(1))
    run(store.enqueue([a_job()]))
    for file in tmp_path.glob("jobs.db*"):
        file.unlink()
    if is_replaced:
        migrate_sqlite(path)
    for call in (store.enqueue([a_job()]), store.list_jobs()):
        with pytest.raises(StoreUnavailable, match="was removed or replaced"):
            run(call)
    run(store.aclose())


def test_a_busy_commit_of_a_callers_connection_is_repeated(rollback_journal: Path) -> None:
    """With this journal a reader keeps others from committing, and the caller's connection does not wait by itself."""
    database = Sqlite(str(rollback_journal), Random(1))
    reader = driver.connect(str(rollback_journal), isolation_level=None, check_same_thread=False)
    reader.execute("begin")
    reader.execute("select * from theirs").fetchall()
    leaving = threading.Timer(0.3, lambda: reader.execute("rollback"))
    leaving.start()
    caller = driver.connect(str(rollback_journal), isolation_level=None, timeout=0)
    assert len(database.run_on(caller, work.enqueue([a_job()]))) == 1
    leaving.join()
    assert not caller.in_transaction
    assert sum(count.jobs for count in database.run_sync(reads.count_jobs())) == 1
    caller.close()
    reader.close()
    database.close()


@pytest.mark.parametrize("offset", [0, 4096])
def test_a_damaged_file_is_no_refusal_of_what_was_sent(tmp_path: Path, offset: int) -> None:
    """A refused finish loses its content, so only values may be refused."""
    path = tmp_path / "damaged.db"
    migrate_sqlite(path)
    whole = path.read_bytes()
    path.write_bytes(whole[:offset] + b"\xff" * (len(whole) - offset))

    def use() -> None:
        store = open_blocking_store(f"sqlite:///{path}", rng=Random(1))
        try:
            run(store.enqueue([a_job()]))
        finally:
            run(store.aclose())

    with pytest.raises(StoreUnavailable, match="the database file is damaged; see `windlass doctor`"):
        use()
