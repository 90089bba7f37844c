"""A move takes every row of every table along, whatever is in it."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import psycopg
import pytest

from tests.moving import every_table
from tests.support.postgres_server import PostgresServer
from tests.support.stores import fresh_postgres, migrate_sqlite
from windlass.store import migrate, open_database
from windlass.store.moving.filling import SIDES
from windlass.store.moving.move import MoveResult, end_move, move

_KINDS = """
    select table_name, column_name, data_type from information_schema.columns
    where table_schema = current_schema() and table_name like 'windlass\\_%'
"""
# What only one of the databases has, each with its reason.
_ONLY_POSTGRES = {"windlass_vouchers"}  # SQLite has one writer, so no lease can wait for the row of another


def moved(source: str, target: str, **options: Any) -> MoveResult:
    with closing(open_database(source, rng=Random(1))) as theirs, closing(open_database(target, rng=Random(2))) as ours:
        done = move(theirs, ours, lambda *_: None, **options)
        end_move(ours)
    return done


def kinds_of(dsn: str) -> dict[tuple[str, str], str]:
    with psycopg.connect(dsn) as connection:
        return {(table, column): kind for table, column, kind in connection.execute(_KINDS)}


@pytest.fixture
def full(tmp_path: Path, postgres_server: PostgresServer) -> Path:
    """Give a file with rows in every table."""
    path = tmp_path / "full.db"
    migrate_sqlite(path)
    with fresh_postgres(postgres_server) as dsn:
        every_table.fill(path, kinds_of(dsn))
    return path


def test_every_row_of_every_table_goes_all_the_way_round(full: Path, tmp_path: Path, postgres_server: PostgresServer) -> None:
    before = every_table.contents(full)
    assert [table for table, rows in before.items() if not rows] == []
    back = tmp_path / "back.db"
    with fresh_postgres(postgres_server) as one, fresh_postgres(postgres_server) as two:
        done = [moved(f"sqlite:///{full}", one), moved(one, two), moved(two, f"sqlite:///{back}")]
    assert every_table.contents(back) == before
    assert [each.tables.keys() - _ONLY_POSTGRES for each in done] == [before.keys()] * 3
    copied = tmp_path / "copied.db"
    moved(f"sqlite:///{back}", f"sqlite:///{copied}")
    assert every_table.contents(copied) == before


def test_both_databases_have_the_same_tables(postgres_dsn: str) -> None:
    """A table of one database alone would be left behind without a word: it must have a reason here."""
    with (
        closing(open_database(postgres_dsn, rng=Random(1))) as postgres,
        closing(open_database("sqlite://", rng=Random(2))) as lite,
    ):
        migrate.up(postgres)
        migrate.up(lite)
        there = postgres.run_script(SIDES["postgres"].tables)
        here = lite.run_script(SIDES["sqlite"].tables)
    assert there.keys() - _ONLY_POSTGRES == here.keys()
    different = {name: set(there[name].names) ^ set(here[name].names) for name in here}
    assert {name: found for name, found in different.items() if found} == {"windlass_run_deltas": {"id"}}
    assert {name for name in there if not there[name].key} == set()
    # Numbers are given by the same tables on both, so that none is given twice after a move.
    assert {name for name in there if there[name].sequence} == {name for name in here if here[name].sequence} | {
        "windlass_run_deltas"
    }
