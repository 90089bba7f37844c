"""The database itself: reachable, how far, which version, which tables, which time."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import timedelta
from statistics import median

from windlass.core.durations import in_words
from windlass.core.finding import Finding, ok, problem, warning
from windlass.doctor.case import DoctorCase
from windlass.errors import SchemaError, SchemaTooNew
from windlass.store import migrate
from windlass.store.sqlite import OLDEST, fixed_build, has_wal_reset_bug
from windlass.store.sqlite_library import driver

_TRIPS = 5
_SLOW_MS = 50.0
_FAR_MS = 500.0
_OFF = timedelta(seconds=2)
_FAR_OFF = timedelta(minutes=5)


async def check_reach(case: DoctorCase) -> Finding:
    """Measure several round trips; the first one, which may connect, is left out."""
    await case.store.clock()
    trips = []
    for _ in range(_TRIPS):
        began = time.perf_counter()
        await case.store.clock()
        trips.append((time.perf_counter() - began) * 1000)
    return distance("PostgreSQL" if case.is_postgres else "SQLite", trips)


def distance(kind: str, trips: Sequence[float]) -> Finding:
    """Rate round trips, in milliseconds."""
    usual = median(trips)
    message = f"{kind} answers in {usual:.1f} ms ({min(trips):.1f} to {max(trips):.1f} ms in {len(trips)} round trips)"
    if usual < _SLOW_MS:
        return ok("database", message)
    remedy = "every claim and every end of a run waits so long: run workers nearer to the database, or relieve it"
    return (problem if usual >= _FAR_MS else warning)("database", f"{message}, which is slow", remedy)


async def check_version(case: DoctorCase) -> Finding:
    """Compare the server or the library with what is supported."""
    version = (await case.server())["server_version"]
    if case.is_postgres:
        return postgres_version(version, int((await case.server())["server_version_num"]))
    return sqlite_version(version, is_wal=(await case.server())["journal_mode"] == "wal")


def postgres_version(version: str, number: int) -> Finding:
    """Rate a server by its version."""
    oldest = migrate.OLDEST_POSTGRES // 10_000
    if number < migrate.OLDEST_POSTGRES:
        return problem("version", f"PostgreSQL {version} is too old", f"upgrade the server to {oldest} or newer")
    return ok("version", f"PostgreSQL {version}; {oldest} is the oldest supported")


def sqlite_version(version: str, *, is_wal: bool) -> Finding:
    """Rate a library by its version and by the bug that some of them have."""
    parts = tuple(int(part) for part in version.split("."))
    build = f"SQLite {version} ({driver.__name__.partition('.')[0]})"
    oldest = ".".join(map(str, OLDEST))
    if parts < OLDEST:
        return problem("version", f"{build} is too old; {oldest} is the oldest supported", fixed_build())
    if has_wal_reset_bug(parts):
        message = f"{build} can lose committed pages of a WAL file that several processes write"
        if is_wal:
            return problem("version", message, fixed_build())
        return warning("version", f"{message}; this file keeps another journal", fixed_build())
    return ok("version", f"{build}; {oldest} is the oldest supported")


async def check_schema(case: DoctorCase) -> Finding:
    """Compare the migrations of the database with those of this program."""
    try:
        await case.store.check_schema()
    except SchemaError as error:
        return unfit_schema(error)
    newest = migrate.migrations(case.store.database.dialect)[-1]
    return ok("schema", f"version {newest.version}, which this Windlass wants")


def unfit_schema(error: SchemaError) -> Finding:
    """Describe tables that are not those of this program."""
    is_new = isinstance(error, SchemaTooNew)
    return problem("schema", str(error), "upgrade Windlass: `pip install --upgrade windlass`" if is_new else "windlass migrate")


async def check_clock(case: DoctorCase) -> Finding:
    """Compare this machine's clock with the database's; up to half of the round trip is unknown."""
    before = case.now()
    there = await case.store.clock()
    after = case.now()
    offset = there - (before + (after - before) / 2)
    unsure = (after - before) / 2
    if abs(offset) - unsure < _OFF:
        return ok("clock", f"this machine and the database differ by {abs(offset) / timedelta(milliseconds=1):.0f} ms")
    side = "behind" if offset > timedelta() else "ahead of"
    message = f"this machine's clock is {in_words(_rounded(abs(offset)))} {side} the database's; jobs go by the database's"
    remedy = "let both machines keep time by NTP: `timedatectl set-ntp true`"
    return (problem if abs(offset) >= _FAR_OFF else warning)("clock", message, remedy)


def _rounded(length: timedelta) -> timedelta:
    return timedelta(seconds=round(length.total_seconds()))
