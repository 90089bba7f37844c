"""Runs the checks one after the other."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from functools import partial
from types import MappingProxyType

from windlass.clock import machine_time
from windlass.config import Settings
from windlass.core.finding import DoctorOptions, Examination, Finding, Notice, Severity, problem
from windlass.doctor import (
    database_checks,
    deep_checks,
    fleet_checks,
    growth_checks,
    postgres_checks,
    schema_checks,
    sqlite_checks,
)
from windlass.doctor.case import Check, DoctorCase
from windlass.errors import CannotConnect, SchemaError, StoreError
from windlass.store import Store
from windlass.store.doctor import no_notice

_DATABASE: Mapping[str, Check] = MappingProxyType(
    {
        "database": database_checks.check_reach,
        "version": database_checks.check_version,
        "schema": database_checks.check_schema,
        "clock": database_checks.check_clock,
    }
)
_POSTGRES: Mapping[str, Check] = MappingProxyType(
    {
        "pooler": postgres_checks.check_pooler,
        "listener": postgres_checks.check_listener,
        "timeouts": postgres_checks.check_timeouts,
        "connections": postgres_checks.check_connections,
        "transactions": postgres_checks.check_transactions,
        "vacuum": postgres_checks.check_vacuum,
    }
)
_SQLITE: Mapping[str, Check] = MappingProxyType(
    {
        "journal": sqlite_checks.check_journal,
        "checkpoint": sqlite_checks.check_checkpoint,
        "disk": sqlite_checks.check_disk,
    }
)
_TABLES: Mapping[str, Check] = MappingProxyType(
    {
        "indexes": schema_checks.check_indexes,
        "triggers": schema_checks.check_triggers,
        "workers": fleet_checks.check_workers,
        "upkeep": fleet_checks.check_upkeep,
        "chores": fleet_checks.check_chores,
        "served": fleet_checks.check_served,
        "overdue": fleet_checks.check_overdue,
        "backlog": growth_checks.check_backlog,
        "retention": growth_checks.check_retention,
        "growth": growth_checks.check_growth,
    }
)
_WHERE = "start the server, or name the right database with --database or WINDLASS_DATABASE_URL"


async def examine(
    opened: Callable[[], Awaitable[Store]],
    settings: Settings,
    options: DoctorOptions | None = None,
    *,
    now: Callable[[], datetime] = machine_time,
    is_blocking: bool = False,
) -> Examination:
    """Run every check that fits this database; one that cannot be run is a problem of its own, and raises nothing."""
    wanted = options or {}
    notice = wanted.get("notice", no_notice)
    try:
        store = await opened()
        await store.clock()
    except SchemaError as error:
        return Examination((database_checks.unfit_schema(error),))
    except StoreError as error:
        cause = str(error) if isinstance(error, CannotConnect) else f"the database does not answer: {error}"
        return Examination((problem("database", cause, _WHERE),))
    case = DoctorCase(store, settings, now, is_blocking=is_blocking)
    found = await _run(case, {**_DATABASE, **(_POSTGRES if case.is_postgres else _SQLITE)}, notice)
    if any(one.check == "schema" and one.verdict is not Severity.OK for one in found):
        return Examination(tuple(found))
    if wanted.get("repair"):
        found += await _run(case, {"repair": partial(deep_checks.repair, actor=wanted.get("actor"))}, notice)
    found += await _run(case, _TABLES, notice)
    if wanted.get("deep"):
        found += await _run_deep(case, notice)
    return Examination(tuple(found))


async def _run(case: DoctorCase, checks: Mapping[str, Check], notice: Notice) -> list[Finding]:
    found: list[Finding] = []
    for name, check in checks.items():
        notice(name, 0)
        try:
            found.append(await check(case))
        except (StoreError, OSError) as error:
            found.append(_unchecked(name, error))
    return found


async def _run_deep(case: DoctorCase, notice: Notice) -> list[Finding]:
    found = [] if case.is_postgres else await _run(case, {"file": deep_checks.check_file}, notice)
    try:
        return found + await deep_checks.check_rows(case, notice)
    except StoreError as error:
        return [*found, _unchecked("rows", error)]


def _unchecked(name: str, error: Exception) -> Finding:
    return problem(name, f"could not be checked: {error}", "the message says what is in the way")
