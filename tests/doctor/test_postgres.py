"""A PostgreSQL server: the way to it, its limits, and what keeps it from cleaning up."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from tests.crash.test_pooler import find_pgbouncer, running_pgbouncer
from tests.doctor.conftest import ON_POSTGRES, Patient
from windlass import Windlass
from windlass.core.finding import Finding, Severity
from windlass.doctor import postgres_checks
from windlass.store import parse_url
from windlass.store.postgres_path import try_path

pytestmark = ON_POSTGRES


async def found_by(url: str, **settings: Any) -> dict[str, Finding]:
    async with Windlass(url, **settings) as app:
        return {one.check: one for one in (await app.doctor()).findings}


async def test_a_pooler_in_transaction_mode_is_recognised(url: str, request: pytest.FixtureRequest) -> None:
    async with running_pgbouncer(find_pgbouncer(request), url) as pooled:
        found = await found_by(pooled)
        assert (found["pooler"].verdict, "transaction mode" in found["pooler"].message) == (Severity.PROBLEM, True)
        assert "prepare=off" in str(found["pooler"].remedy)
        found = await found_by(f"{pooled}&prepare=off")
        assert (found["pooler"].verdict, found["listener"].verdict) == (Severity.OK, Severity.WARNING)
        assert "WINDLASS_LISTEN_URL" in str(found["listener"].remedy)
        found = await found_by(f"{pooled}&prepare=off", listen_url=url)
        assert (found["pooler"].verdict, found["listener"].verdict) == (Severity.OK, Severity.OK)


async def test_a_pooler_in_session_mode_is_no_trouble(url: str, request: pytest.FixtureRequest) -> None:
    async with running_pgbouncer(find_pgbouncer(request), url, mode="session") as pooled:
        # Two sessions are all that this pooler has, so no store may hold one.
        path = try_path(parse_url(pooled)[1], parse_url(url)[1])
    assert (path.is_pooled, path.shares_sessions) == (True, False)
    assert path.heard_after_s is not None


async def test_without_a_pooler_wake_ups_arrive(patient: Patient) -> None:
    assert (await patient.finding("pooler")).message == "no pooler is between"
    assert "a wake-up arrives after" in (await patient.finding("listener")).message


async def test_a_transaction_that_stands_idle_is_named(patient: Patient, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (await patient.finding("transactions")).verdict is Severity.OK
    monkeypatch.setattr(postgres_checks, "_IDLE_S", 0)
    async with await psycopg.AsyncConnection.connect(url, application_name="forgetful") as connection:
        await connection.execute("select count(*) from windlass_jobs")
        found = await patient.finding("transactions")
        assert (found.verdict, "forgetful" in found.message, "stands idle" in found.message) == (Severity.WARNING, True, True)
        assert found.remedy == f"select pg_terminate_backend({connection.info.backend_pid})"


async def test_autovacuum_that_is_off_for_a_table_is_named(patient: Patient) -> None:
    await patient.execute("alter table windlass_jobs set (autovacuum_enabled = off)")
    found = await patient.finding("vacuum")
    assert (found.verdict, "for windlass_jobs" in found.message) == (Severity.PROBLEM, True)
    await patient.execute(str(found.remedy))
    assert (await patient.finding("vacuum")).verdict is Severity.OK


async def test_dead_rows_are_read_from_the_servers_statistics(patient: Patient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_checks, "_FEW_DEAD", 1000)
    await patient.execute(
        "insert into windlass_sources (id, name, url, created_at, updated_at) "
        "select n::text, 'n', 'u', now(), now() from generate_series(1, 1000) as n"
    )
    # Else the server may clean the table between the change and the check.
    await patient.execute("alter table windlass_sources set (autovacuum_vacuum_threshold = 1000000)")
    await patient.execute(
        "do $$ begin for turn in 1..2 loop update windlass_sources set name = 'm'; end loop; "
        "perform pg_stat_force_next_flush(); end $$"
    )
    found = await patient.finding("vacuum")
    assert (found.verdict, "windlass_sources has 2,000 dead rows beside 1,000" in found.message) == (Severity.WARNING, True)
    await patient.execute(str(found.remedy).partition("`")[2].rstrip("`"))
    assert (await patient.finding("vacuum")).verdict is Severity.OK


async def test_a_server_that_ends_idle_sessions_is_named(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"alter database {connection.info.dbname} set idle_session_timeout = '30s'")
    found = (await found_by(url))["timeouts"]
    assert (found.verdict, "idle for 30 s" in found.message) == (Severity.WARNING, True)


async def test_sessions_that_we_may_not_set_up_keep_their_locks(url: str) -> None:
    assert (await found_by(url))["timeouts"].message == (
        "a statement may take 10 s, wait for a lock for ever, stand idle in a transaction 1 min"
    )
    found = (await found_by(f"{url}&prepare=off"))["timeouts"]
    assert (found.verdict, "idle_in_transaction_session_timeout" in str(found.remedy)) == (Severity.WARNING, True)


async def test_connections_that_run_out_are_named(patient: Patient, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (await patient.finding("connections")).verdict is Severity.OK
    monkeypatch.setattr(postgres_checks, "_NEARLY_FULL", 0)
    found = await patient.finding("connections")
    assert (found.verdict, "connections are taken" in found.message) == (Severity.WARNING, True)
