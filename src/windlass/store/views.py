"""Views by the names of older systems, for people who ask in SQL; made on request and never over a table that is not ours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windlass.errors import SchemaError
from windlass.store.spelling import SQL

if TYPE_CHECKING:
    from windlass.store.migrate import Scriptable

NAMES = (
    "jobs",
    "job_queue_health",
    "dead_letter_jobs",
    "circuit_breakers",
    "job_metrics",
    "job_attempts",
    "job_executions",
)
_MARK = "a view of Windlass"
_FOUND = {
    "postgres": "select obj_description(to_regclass('{name}'), 'pg_class') is not distinct from '{mark}' "
    "where to_regclass('{name}') is not null",
    "sqlite": "select instr(sql, '/* {mark} */') > 0 from sqlite_master where name = '{name}'",
}


def install(database: Scriptable) -> tuple[str, ...]:
    """Make the views anew, all or none; raises SchemaError where a name is taken by something that is not ours."""

    def work(connection: Any) -> tuple[str, ...]:
        taken = [name for name in NAMES if _is_ours(connection, database.dialect, name) is False]
        if taken:
            raise SchemaError(
                f"cannot make the views: {', '.join(taken)} is there already and not ours; rename it, or do without"
            )
        _drop(connection, database.dialect)
        for name in NAMES:
            _create(connection, database.dialect, name)
        return NAMES

    return database.run_script(work)


def remove(database: Scriptable) -> tuple[str, ...]:
    """Drop the views that are ours; returns their names."""
    return database.run_script(lambda connection: _drop(connection, database.dialect))


def _is_ours(connection: Any, dialect: str, name: str) -> bool | None:
    """Return whether what has this name is a view of ours; None when nothing has it."""
    found = connection.execute(_FOUND[dialect].format(name=name, mark=_MARK)).fetchone()
    return None if found is None else bool(found[0])


def _drop(connection: Any, dialect: str) -> tuple[str, ...]:
    ours = tuple(name for name in NAMES if _is_ours(connection, dialect, name))
    for name in ours:
        connection.execute(f"drop view {name}")
    return ours


def _create(connection: Any, dialect: str, name: str) -> None:
    common = SQL.joinpath("common", "views", f"{name}.sql")
    text = (common if common.is_file() else SQL.joinpath(dialect, "views", f"{name}.sql")).read_text("utf-8")
    connection.execute(f"create view {name} /* {_MARK} */ as\n{text}")
    if dialect == "postgres":
        connection.execute(f"comment on view {name} is '{_MARK}'")
