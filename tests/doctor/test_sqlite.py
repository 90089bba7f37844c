"""A SQLite file: its journal, its checkpoints, its disk, its pages."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from tests.doctor.conftest import ON_SQLITE, Patient
from windlass import Windlass
from windlass.core.finding import Severity
from windlass.doctor import sqlite_checks
from windlass.store.sqlite_file import SqliteFiles
from windlass.store.sqlite_library import sqlite_driver as driver

GIB = 2**30


def path_of(url: str) -> Path:
    return Path(url.removeprefix("sqlite:///"))


@ON_SQLITE
async def test_another_journal_mode_is_named(url: str) -> None:
    with closing(driver.connect(path_of(url))) as connection:
        connection.execute("pragma journal_mode = delete")
    async with Windlass(url) as app:
        found = await Patient(app).finding("journal")
    assert (found.verdict, "journal mode delete" in found.message) == (Severity.WARNING, True)
    assert "pragma journal_mode = wal" in str(found.remedy)


@ON_SQLITE
async def test_wal_is_not_advised_where_the_library_loses_its_pages(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("windlass.doctor.sqlite_checks.has_wal_reset_bug", lambda _: True)
    with closing(driver.connect(path_of(url))) as connection:
        connection.execute("pragma journal_mode = delete")
    async with Windlass(url) as app:
        found = await Patient(app).finding("journal")
    assert (found.verdict, found.remedy) == (Severity.OK, None)
    assert "slower than WAL" in found.message


async def test_a_database_in_memory_is_named() -> None:
    async with Windlass("sqlite://") as app:
        found = {one.check: one for one in (await app.doctor(deep=True)).findings}
    assert found["journal"].verdict is Severity.WARNING
    assert {name for name, one in found.items() if one.verdict is not Severity.OK} == {"journal"}


@ON_SQLITE
async def test_a_reader_that_holds_the_journal_back_is_noticed(patient: Patient, url: str) -> None:
    assert (await patient.finding("checkpoint")).verdict is Severity.OK
    with closing(driver.connect(path_of(url), isolation_level=None)) as reader:
        reader.execute("begin")
        reader.execute("select count(*) from windlass_jobs").fetchone()
        with closing(driver.connect(path_of(url), isolation_level=None)) as writer:
            writer.execute("create table ballast (bytes blob)")
            writer.execute("insert into ballast values (zeroblob(40 * 1024 * 1024))")
        found = await patient.finding("checkpoint")
        assert (found.verdict, "a reader holds it back" in found.message) == (Severity.WARNING, True)
        assert str(path_of(url)) in str(found.remedy)
    # A large journal that was written back is no trouble.
    found = await patient.finding("checkpoint")
    assert (found.verdict, "0 bytes of it" in found.message) == (Severity.OK, True)


@pytest.mark.parametrize(
    ("free", "disk", "verdict"),
    [(50 * GIB, 100 * GIB, "ok"), (2 * GIB, 100 * GIB, "warning"), (GIB // 2, 2 * GIB, "warning"), (2**20, 2 * GIB, "problem")],
)
def test_a_disk_that_is_nearly_full_is_named(free: int, disk: int, verdict: str) -> None:
    found = sqlite_checks.disk_room(SqliteFiles("/data/jobs.db", 1, 0, 0, free, disk))
    assert found.verdict == verdict
    if verdict != "ok":
        assert "/data" in str(found.remedy)


@ON_SQLITE
async def test_a_damaged_file_is_found_by_the_deep_checks(url: str) -> None:
    async with Windlass(url) as app:
        store = await app.store()
        [[page]] = store.database.run_script(  # type: ignore[attr-defined]  # SQLite has it
            lambda one: one.execute("select rootpage from sqlite_master where name = 'windlass_jobs_pending'").fetchall()
        )
    with path_of(url).open("r+b") as file:
        file.seek((page - 1) * 4096)
        file.write(b"\xff" * 4096)
    async with Windlass(url) as app:
        found = {one.check: one for one in (await app.doctor(deep=True)).findings}
    assert found["file"].verdict is Severity.PROBLEM
    assert found["file"].details or "malformed" in found["file"].message
