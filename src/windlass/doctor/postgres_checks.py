"""A PostgreSQL server: the connection to it, its limits, and what keeps it from cleaning up."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

from windlass.core.durations import in_words
from windlass.core.finding import Finding, ok, problem, warning
from windlass.doctor.case import DoctorCase
from windlass.doctor.sizes import counted, size
from windlass.store import parse_url

if TYPE_CHECKING:
    from windlass.store.postgres_path import PostgresPath

_LONG_S = 15 * 60
_TOO_LONG_S = 60 * 60
_IDLE_S = 2 * 60
_SHORTEST_IDLE_SESSION_MS = 60_000
_NEARLY_FULL = 0.9
_FEW_DEAD = 100_000
_DEAD_SHARE = 0.5
_MANY_DEAD_SHARE = 5.0
_MOST_NAMED = 3


async def check_pooler(case: DoctorCase) -> Finding:
    """Find out whether a pooler lends our sessions to others, and whether the URL accounts for it."""
    path = await _path(case)
    is_prepared = parse_url(case.settings.database_url)[2]
    if path.shares_sessions and is_prepared:
        message = "a pooler in transaction mode is between, and this URL prepares statements and settings in its sessions"
        return problem("pooler", message, "add prepare=off to the database URL, as in postgresql://…?prepare=off")
    if path.shares_sessions:
        return ok("pooler", "a pooler in transaction mode is between, and the URL says prepare=off")
    kind = "a pooler in session mode is between" if path.is_pooled else "no pooler is between"
    return ok("pooler", kind if is_prepared else f"{kind}; prepare=off is not needed and costs time")


async def check_listener(case: DoctorCase) -> Finding:
    """Send and receive a wake-up as workers do."""
    path = await _path(case)
    if path.heard_after_s is not None:
        return ok("listener", f"a wake-up arrives after {path.heard_after_s * 1000:.1f} ms")
    message = "wake-ups do not arrive: workers find new jobs only when they poll"
    remedy = "set WINDLASS_LISTEN_URL to an address that leads to PostgreSQL itself, past the pooler"
    return warning("listener", message, remedy)


async def _path(case: DoctorCase) -> PostgresPath:
    from windlass.store.postgres_path import try_path  # noqa: PLC0415 - an optional dependency

    if case.path is None:
        dsn = parse_url(case.settings.database_url)[1]
        listen_url = case.settings.listen_url
        listen_dsn = dsn if listen_url is None else parse_url(listen_url)[1]
        case.path = await case.aside(lambda: try_path(dsn, listen_dsn))
    return case.path


async def check_timeouts(case: DoctorCase) -> Finding:
    """Look at the limits that are in force in a session of ours."""
    facts = await case.server()
    limits = {name: int(facts.get(name, 0)) for name in (*_TIMEOUTS, "idle_session_timeout", "transaction_timeout")}
    message = ", ".join(f"{words} {_limit(limits[name])}" for name, words in _TIMEOUTS.items())
    if 0 < limits["idle_session_timeout"] < _SHORTEST_IDLE_SESSION_MS:
        remedy = "alter role … set idle_session_timeout = 0, for the role of this URL"
        return warning("timeouts", f"the server ends sessions idle for {_limit(limits['idle_session_timeout'])}", remedy)
    if not limits["idle_in_transaction_session_timeout"]:
        remedy = "alter role … set idle_in_transaction_session_timeout = '60s', for the role of this URL"
        return warning("timeouts", f"{message}: a client that vanishes inside a transaction keeps its locks", remedy)
    return ok("timeouts", message)


_TIMEOUTS = {
    "statement_timeout": "a statement may take",
    "lock_timeout": "wait for a lock",
    "idle_in_transaction_session_timeout": "stand idle in a transaction",
}


def _limit(milliseconds: int) -> str:
    return in_words(timedelta(milliseconds=milliseconds)) if milliseconds else "for ever"


async def check_connections(case: DoctorCase) -> Finding:
    """Look how many connections the server has left, and whether it takes writes."""
    facts = await case.server()
    if facts["is_standby"] == "true":
        return problem("connections", "this server is a standby, which takes no writes", "name the primary in the database URL")
    taken, most = int(facts["connections"]), int(facts["max_connections"]) - int(facts["superuser_reserved_connections"])
    message = f"{taken} of {most} connections are taken"
    if taken < most * _NEARLY_FULL:
        return ok("connections", message)
    remedy = "put a pooler between (prepare=off), run fewer processes, or raise max_connections"
    return warning("connections", message, remedy)


async def check_transactions(case: DoctorCase) -> Finding:
    """Look for transactions that have been open for long."""
    found = await case.ask("doctor_sessions")
    old = [(kind, who, seconds) for kind, who, seconds in found if seconds >= (_IDLE_S if kind == "idle" else _LONG_S)]
    if not old:
        oldest = max((seconds for _, _, seconds in found), default=0)
        return ok("transactions", f"the oldest open transaction is {in_words(timedelta(seconds=oldest))} old")
    kind, who, seconds = max(old, key=lambda one: one[2])
    words = {"transaction": "is open", "idle": "stands idle", "prepared": "is prepared and not ended"}[kind]
    message = (
        f"a transaction ({who}) {words} for {in_words(timedelta(seconds=seconds))}: nothing that ended since can be cleaned away"
    )
    remedy = f"rollback prepared '{who}'" if kind == "prepared" else f"select pg_terminate_backend({who.partition(',')[0]})"
    details = [f"{kind}: {who}, {in_words(timedelta(seconds=seconds))}" for kind, who, seconds in old] if len(old) > 1 else []
    return (problem if seconds >= _TOO_LONG_S else warning)("transactions", message, remedy, *details)


async def check_vacuum(case: DoctorCase) -> Finding:
    """Look at rows that are dead and not cleaned away, from the server's own statistics."""
    tables = [_Table._make(row) for row in await case.ask("doctor_tables")]
    is_off = (await case.server())["autovacuum"] == "off"
    exempt = [table.name for table in tables if table.is_exempt]
    if is_off or exempt:
        where = "for the whole server" if is_off else f"for {', '.join(exempt[:_MOST_NAMED])}"
        remedy = "alter system set autovacuum = on" if is_off else f"alter table {exempt[0]} reset (autovacuum_enabled)"
        return problem("vacuum", f"autovacuum is off {where}: dead rows stay, and every query gets slower", remedy)
    return dead_rows(tables)


class _Table(NamedTuple):
    name: str
    live: int
    dead: int
    size: int
    is_exempt: bool
    vacuumed_s_ago: int

    @property
    def share(self) -> float:
        return self.dead / max(self.live, 1)


def dead_rows(tables: list[_Table]) -> Finding:
    """Rate tables by how many of their rows are dead."""
    bloated = sorted((one for one in tables if one.dead >= _FEW_DEAD and one.share >= _DEAD_SHARE), key=lambda one: -one.dead)
    if not bloated:
        worst = max(tables, key=lambda one: one.dead, default=None)
        most = "" if worst is None or not worst.dead else f"; most in {worst.name}: {worst.dead:,} beside {worst.live:,}"
        return ok("vacuum", f"no table has too many dead rows{most}")
    worst = bloated[0]
    message = f"{worst.name} has {counted(worst.dead, 'dead row')} beside {worst.live:,} live ones ({size(worst.size)})"
    details = [f"{one.name}: {one.dead:,} dead, {one.live:,} live, {size(one.size)}" for one in bloated]
    kind = problem if worst.share >= _MANY_DEAD_SHARE else warning
    return kind("vacuum", message, f"end old transactions first, then `vacuum (analyze) {worst.name}`", *details)
