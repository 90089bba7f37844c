"""Indexes and triggers: what the migrations make is known, missed and named."""

from __future__ import annotations

from tests.doctor.conftest import ON_POSTGRES, Patient
from windlass.core.finding import Severity
from windlass.store.schema_objects import schema_objects

_PRESENT = {
    "sqlite": "select type, name from sqlite_master where type in ('index', 'trigger') and sql is not null",
    "postgres": """
        select 'index', c.relname from pg_index i join pg_class c on c.oid = i.indexrelid
        where c.relname like 'windlass%' and not exists (select 1 from pg_constraint k where k.conindid = i.indexrelid)
        union all select 'trigger', tgname from pg_trigger where not tgisinternal""",
}


async def test_what_is_wanted_is_what_the_migrations_make(patient: Patient) -> None:
    dialect = (await patient.app.store()).database.dialect
    assert set(schema_objects(dialect)) == set(await patient.execute(_PRESENT[dialect]))


async def test_a_missing_index_is_named_and_its_remedy_mends_it(patient: Patient) -> None:
    await patient.execute("drop index windlass_jobs_pending")
    await patient.execute("drop index windlass_jobs_listed")
    found = await patient.finding("indexes")
    assert (found.verdict, "2 indexes are missing" in found.message) == (Severity.PROBLEM, True)
    assert len(found.details) == 2
    for _ in range(2):
        await patient.execute(str((await patient.finding("indexes")).remedy))
    assert (await patient.finding("indexes")).verdict is Severity.OK


async def test_a_missing_trigger_is_named_with_the_statement_that_makes_it(patient: Patient) -> None:
    table = " on windlass_jobs" if (await patient.app.store()).database.dialect == "postgres" else ""
    await patient.execute(f"drop trigger windlass_jobs_count_inserted{table}")
    found = await patient.finding("triggers")
    assert (found.verdict, "windlass_jobs_count_inserted" in found.message) == (Severity.PROBLEM, True)
    [statement] = found.details
    await patient.execute(statement)
    assert (await patient.finding("triggers")).verdict is Severity.OK


@ON_POSTGRES
async def test_a_disabled_trigger_is_found(patient: Patient) -> None:
    await patient.execute("alter table windlass_executions disable trigger windlass_executions_counted")
    found = await patient.finding("triggers")
    assert (found.verdict, "disabled (windlass_executions_counted)" in found.message) == (Severity.PROBLEM, True)
    await patient.execute(str(found.remedy).partition(";")[0])
    assert (await patient.finding("triggers")).verdict is Severity.OK


@ON_POSTGRES
async def test_an_index_that_was_left_unfinished_is_found(patient: Patient) -> None:
    await patient.execute("update pg_index set indisvalid = false where indexrelid = 'windlass_jobs_leased'::regclass")
    found = await patient.finding("indexes")
    assert (found.verdict, "not valid (windlass_jobs_leased)" in found.message) == (Severity.PROBLEM, True)
    await patient.execute(str(found.remedy))
    assert (await patient.finding("indexes")).verdict is Severity.OK
