"""Databases that are emptied and lent again: making one takes a hundred times as long."""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg import sql

_LARGEST = 8 * 1024 * 1024

# What a test may leave behind that emptying the tables does not take away.
_SHAPE = """
select (select count(*) from pg_class where relnamespace = 'public'::regnamespace),
    (select count(*) from pg_proc where pronamespace = 'public'::regnamespace),
    (select count(*) from pg_trigger where tgenabled = 'O'),
    (select count(*) from pg_constraint where connamespace = 'public'::regnamespace and convalidated)
"""
_STRANGERS = (
    "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"
)
_TABLES = "select tablename from pg_tables where schemaname = 'public' order by tablename"
_SEQUENCES = "select setval(format('%I.%I', schemaname, sequencename)::regclass, start_value, false) from pg_sequences"
_SIZE = """
select coalesce(sum(pg_table_size(oid)), 0)::bigint from pg_class
where relnamespace = 'public'::regnamespace and relkind = 'r'
"""


class Recycler:
    """Remembers how a fresh database looks, and makes used ones look so again."""

    def __init__(self, dsn: str) -> None:
        """Learn from a database that nobody has used."""
        with psycopg.connect(dsn, autocommit=True) as connection:
            self._shape = connection.execute(_SHAPE).fetchone()
            self._tables = [name for (name,) in connection.execute(_TABLES).fetchall()]
            self._seeds = {name: _rows(connection, name) for name in self._tables}

    def renew(self, dsn: str) -> bool:
        """Empty a database; says whether it is as good as new."""
        try:
            with psycopg.connect(dsn, autocommit=True) as connection:
                connection.execute(_STRANGERS)
                if connection.execute(_SHAPE).fetchone() != self._shape or _size(connection) > _LARGEST:
                    return False
                # The audit log lets nobody delete; triggers that count are not wanted here either.
                connection.execute("set session_replication_role = replica")
                with connection.transaction():
                    self._empty(connection)
                return True
        except psycopg.Error:
            return False

    def _empty(self, connection: psycopg.Connection[Any]) -> None:
        connection.execute(sql.SQL(";").join(sql.SQL("delete from {}").format(sql.Identifier(table)) for table in self._tables))
        for table, rows in self._seeds.items():
            _insert(connection, table, rows)
        connection.execute(_SEQUENCES)


def _rows(connection: psycopg.Connection[Any], table: str) -> list[tuple[Any, ...]]:
    return connection.execute(sql.SQL("select * from {}").format(sql.Identifier(table))).fetchall()


def _insert(connection: psycopg.Connection[Any], table: str, rows: list[tuple[Any, ...]]) -> None:
    for row in rows:
        places = sql.SQL(", ").join(sql.Placeholder() * len(row))
        connection.execute(sql.SQL("insert into {} values ({})").format(sql.Identifier(table), places), row)


def _size(connection: psycopg.Connection[Any]) -> int:
    [[size]] = connection.execute(_SIZE).fetchall()
    return int(size)
