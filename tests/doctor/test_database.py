"""The database itself: reachable, how far, which version, which schema, which time."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from tests.doctor.conftest import ON_POSTGRES, ON_SQLITE, Patient
from tests.support.stores import migrate_sqlite
from windlass import Windlass
from windlass.clock import machine_time
from windlass.core.finding import Severity
from windlass.doctor import database_checks, examine
from windlass.store.sqlite_library import sqlite_driver as driver


async def test_a_new_database_is_well(patient: Patient, url: str) -> None:
    found = await patient.examined()
    assert [(one.check, one.message) for one in found.findings if one.verdict is not Severity.OK] == []
    with Windlass(url) as app:
        alike = app.doctor_sync()
    assert [one.check for one in alike.findings] == [one.check for one in found.findings]
    assert alike.verdict is Severity.OK


async def test_a_database_that_is_not_there_is_a_finding_without_its_password() -> None:
    async with Windlass("postgresql://ann:hunter2@127.0.0.1:1/jobs") as app:
        [found] = (await app.doctor()).findings
    assert (found.check, found.verdict) == ("database", Severity.PROBLEM)
    assert "127.0.0.1, port 1, database 'jobs'" in found.message
    assert "hunter2" not in str(found)


@ON_POSTGRES
async def test_an_old_schema_is_named_and_the_tables_are_left_alone(patient: Patient) -> None:
    await patient.execute("delete from windlass_schema where version = (select max(version) from windlass_schema)")
    found = await patient.examined(deep=True)
    schema = next(one for one in found.findings if one.check == "schema")
    assert (schema.verdict, schema.remedy) == (Severity.PROBLEM, "windlass migrate")
    assert "older than this version" in schema.message
    assert not {"workers", "rows"} & {one.check for one in found.findings}


async def test_a_newer_schema_asks_for_a_newer_windlass(tmp_path: Path) -> None:
    path = tmp_path / "new.db"
    migrate_sqlite(path)
    connection = driver.connect(str(path), isolation_level=None)
    connection.execute("insert into windlass_schema values (9999, 'later', 'x', '')")
    connection.close()
    [found] = (await Windlass(f"sqlite:///{path}").doctor()).findings
    assert (found.check, found.verdict, "9999" in found.message) == ("schema", Severity.PROBLEM, True)
    assert "upgrade Windlass" in str(found.remedy)


@pytest.mark.parametrize(("off", "verdict"), [(1, "ok"), (-5, "warning"), (7, "warning"), (3600, "problem")])
async def test_a_clock_that_differs_is_measured(patient: Patient, off: int, verdict: str) -> None:
    found = await examine(patient.app.store, patient.app.settings, now=lambda: machine_time() + timedelta(seconds=off))
    [clock] = [one for one in found.findings if one.check == "clock"]
    assert clock.verdict == verdict
    if verdict != "ok":
        assert ("ahead of" if off > 0 else "behind") in clock.message
        assert "NTP" in str(clock.remedy)


@ON_SQLITE
async def test_a_database_whose_time_is_given_is_compared_too(patient: Patient) -> None:
    found = await patient.finding("clock", at=machine_time() + timedelta(minutes=3))
    assert (found.verdict, "3 min behind" in found.message) == (Severity.WARNING, True)


@pytest.mark.parametrize(("trips", "verdict"), [([0.4, 0.5, 90.0], "ok"), ([60.0, 61.0, 62.0], "warning"), ([600.0], "problem")])
def test_a_database_that_is_far_away_is_named_slow(trips: list[float], verdict: str) -> None:
    assert database_checks.distance("PostgreSQL", trips).verdict == verdict


def test_versions_are_held_to_what_is_supported() -> None:
    assert database_checks.postgres_version("14.2", 140_002).verdict is Severity.PROBLEM
    assert database_checks.postgres_version("15.0", 150_000).verdict is Severity.OK
    assert database_checks.sqlite_version("3.31.1", is_wal=True).verdict is Severity.PROBLEM
    assert database_checks.sqlite_version("3.45.1", is_wal=True).verdict is Severity.PROBLEM
    assert database_checks.sqlite_version("3.45.1", is_wal=False).verdict is Severity.WARNING
    assert database_checks.sqlite_version("3.53.4", is_wal=True).verdict is Severity.OK
