"""Both dialects answer the same questions with the same columns."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from typing import Any

import psycopg
import pytest

import windlass.store
from tests.support.postgres_server import PostgresServer
from tests.support.stores import fresh_postgres, sqlite_template
from windlass.core.cadence import EPOCH
from windlass.store.queries import PARAMETER, Queries, queries
from windlass.store.rows import SHAPES
from windlass.store.sqlite import run_statements
from windlass.store.sqlite_library import sqlite_driver as driver

# Each module of calls brings the shapes of its queries along.
MODULES = {one.name: import_module(one.name) for one in walk_packages(windlass.store.__path__, "windlass.store.")}
POSTGRES = queries("postgres")
SQLITE = queries("sqlite")
# What the SQLite adapter knows inside the transaction and PostgreSQL knows by itself.
AMBIENT = {"now", "last_id", "is_announced"}

SAMPLES: dict[str, Any] = {
    "jobs": '[{"task":"t","lane":"l","ord":0,"id":1,"rows":[{}],"payload":{}}]',
    "keys": "[]",
    "leases": "[]",
    "batch": "[]",
    "ids": "[]",
    "lease": timedelta(seconds=1),
    "next_at": EPOCH,
    "seen_at": EPOCH,
    "app": "a",
    "names": "[]",
    "groups": "[]",
    "declared_by": "a",
    "child_key": "k",
    "older_than": timedelta(days=1),
    "next_slot_at": EPOCH,
    "is_served": True,
    "missed_after": timedelta(seconds=60),
    "payload": "{}",
    "logs": "[]",
    "minute": EPOCH,
    "kept_since": EPOCH,
    "is_announced": True,
    "metadata": "{}",
    "started": True,
    "only_gone": True,
    "place": "p",
    "expired_before": None,
    "any_death": True,
    "any_recurring": True,
    "state": "pending",
    "reason": "why",
    "cadence": '{"cadence":"@daily"}',
    "worker": "w",
    "description": "d",
    "cursor": "c",
    "message": "m",
    "retry": "task",
    "task": "t",
    "details": "{}",
    "principal": "p",
    "action": "a",
    "outcome": "done",
    "target": "x",
    "request_id": "r",
    "name": "n",
    "after_name": "n",
    "lane": "l",
    "last_failure_at": EPOCH,
    "opened_at": EPOCH,
    "probe_at": EPOCH,
    "half_opened_at": EPOCH,
    "is_forced": True,
    "items": '[{"key":"k","data":{}}]',
    "collection": "c",
    "key": "k",
    "answer": "{}",
    "pull_id": "p",
    "source_id": "s",
    "after_source": "s",
    "ran_before": EPOCH,
    "value": "v",
    "url": "https://example.org",
    "error": "e",
    "error_type": "E",
    "fingerprints": "{}",
    "closed_reason": "retried",
    "by": "ada",
    "note": "n",
    "due_at": EPOCH,
    "mail": "{}",
    "reminders": "[]",
    "fingerprint": "f",
    "states": '["pending"]',
    "reasons": '["scheduled retry"]',
    "lanes": '["l"]',
    "subject": "s",
    "correlation_id": "c",
    "search": "x",
    "since": EPOCH,
    "is_template": True,
    "is_recurring": True,
    "is_open": True,
    "kind": "worker",
    "host": "h",
    "program": "1",
    "pools": "{}",
    "tasks": '[{"name":"t","lane":"l","options":"{}"}]',
    "offline_after": timedelta(seconds=1),
    "gone_for": timedelta(seconds=1),
    "keep_for": timedelta(seconds=1),
    "kept_dead": timedelta(seconds=1),
    "every": timedelta(seconds=1),
    "again": timedelta(seconds=1),
    "chore": "c",
    "writers": "[]",
    "after_at": EPOCH,
    "runs": "[]",
    "links": "[]",
    "words": '["w","v*"]',
    "title": "t",
    "text": "t",
    "etag": "e",
    "last_modified": "m",
    "lane_0": "l",
    "priority_0": 0,
    "run_at_0": EPOCH,
    "task_0": "t",
    "state_0": "pending",
    "edge_at": EPOCH,
    "sort": "run_at",
    "slices": "[]",
    "share": 1,
    "before_at": EPOCH,
    "status": "open",
    "role": "viewer",
    "token_lanes": "[]",
    "digest": "d",
    "expires_in": timedelta(seconds=1),
    "csrf": "c",
    "lasts": timedelta(seconds=1),
    "entries": '[{"guid":"g"}]',
    "slot_at": EPOCH,
    "is_changed": True,
    "is_gone": True,
    "within": timedelta(seconds=1),
    "hour": timedelta(hours=1),
    "day": timedelta(days=1),
    "week": timedelta(days=7),
    "is_new": True,
    "is_active": True,
    "app_version": "v1",
    "notes": "[]",
    "rule": "r",
    "move": "raise",
    "is_raised": True,
    "at": EPOCH,
}


def sample(name: str) -> Any:
    return SAMPLES.get(name, 1)


def test_both_dialects_have_the_same_queries() -> None:
    assert POSTGRES.names == SQLITE.names


@pytest.mark.parametrize("name", SQLITE.names)
def test_a_query_takes_the_same_parameters_in_both_dialects(name: str) -> None:
    assert _parameters(POSTGRES, name) == _parameters(SQLITE, name)


def _parameters(texts: Queries, name: str) -> set[str]:
    # What PostgreSQL gets as an array is a parameter for each row on SQLite.
    return {parameter.removesuffix("_0") for parameter in texts.parameters(name) - AMBIENT}


def test_every_query_runs_and_answers_with_the_same_columns(postgres_server: PostgresServer, tmp_path: Path) -> None:
    with fresh_postgres(postgres_server) as dsn:
        ours = {name: _postgres_columns(dsn, name) for name in POSTGRES.names}
    path = tmp_path / "windlass.db"
    path.write_bytes(sqlite_template())
    theirs = {name: _sqlite_columns(path, name) for name in SQLITE.names}
    # Claims find their answer as one text, whose rows every test of claims reads.
    found = {name for name in SQLITE.names if "rows_found" in "".join(SQLITE.statements(name, 1))}
    assert found == {"claim", "claim_any", "claim_suspect"}
    assert {name: columns for name, columns in ours.items() if name not in found} == {
        name: columns for name, columns in theirs.items() if name not in found
    }


def test_shapes_fit_the_columns_they_speak_of(postgres_server: PostgresServer) -> None:
    with fresh_postgres(postgres_server) as dsn:
        for name in POSTGRES.names:
            instants, booleans = _postgres_types(dsn, name)
            shape = SHAPES.get(name)
            assert (instants, booleans) == ((shape.instants, shape.booleans) if shape else ((), ())), name


def test_a_module_is_loaded_with_the_shapes_of_the_queries_it_names() -> None:
    trees = {name: ast.parse(inspect.getsource(module)) for name, module in MODULES.items()}
    shapes = {name: set(_declared(name, tree)) for name, tree in trees.items()}
    assert set[str]().union(*shapes.values()) == set(SHAPES)
    for name, tree in trees.items():
        asked = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and node.value in SHAPES}
        missing = asked - set[str]().union(*(shapes[one] for one in _loaded_with(name, trees)))
        assert not missing, f"{name} names {missing} and imports no module that has their shapes"


def _declared(name: str, tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        match node:
            case ast.AnnAssign(target=ast.Name("SHAPES"), value=ast.expr() as value):
                yield from eval(ast.unparse(value), vars(MODULES[name]))
            case ast.AugAssign(target=ast.Name("SHAPES"), value=value):
                yield from eval(ast.unparse(value), vars(MODULES[name]))


def _loaded_with(name: str, trees: dict[str, ast.Module]) -> set[str]:
    """List the modules of the store that importing one imports, itself among them."""
    found, left = {name}, [name]
    while left:
        for node in trees[left.pop()].body:
            if isinstance(node, ast.ImportFrom):
                named = {str(node.module), *(f"{node.module}.{one.name}" for one in node.names)} & trees.keys() - found
                found |= named
                left += named
    return found


def _statement(name: str) -> str:
    [statement] = POSTGRES.statements(name, 1)
    return PARAMETER.sub(r"%(\1)s", statement.replace("%", "%%"))


def _run_postgres(dsn: str, name: str) -> psycopg.Cursor[Any]:
    statement = _statement(name)
    params = {one: sample(one) for one in POSTGRES.parameters(name)} | {"now": None}
    params |= {one: "{}" for one in params if re.search(rf"%\({one}\)s::\w+\[\]", statement)}
    with psycopg.connect(dsn) as connection:
        cursor = connection.execute(statement, params)
        connection.rollback()
        return cursor


def _postgres_columns(dsn: str, name: str) -> int:
    return len(_run_postgres(dsn, name).description or [])


def _postgres_types(dsn: str, name: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    kinds = [column.type_display for column in _run_postgres(dsn, name).description or []]
    instants = tuple(place for place, kind in enumerate(kinds) if kind.startswith("timestamptz"))
    return instants, tuple(place for place, kind in enumerate(kinds) if kind == "bool")


def _sqlite_columns(path: Path, name: str) -> int:
    plain = {one: _plain(sample(one)) for one in SQLITE.parameters(name)} | {"now": 1, "last_id": 0}
    connection = driver.connect(str(path), isolation_level=None)
    try:
        connection.execute("begin immediate")
        cursor = connection.cursor()
        run_statements(cursor, SQLITE.statements(name, 1), plain)
        columns = len(cursor.description or [])
        connection.rollback()
        return columns
    finally:
        connection.close()


def _plain(value: Any) -> Any:
    return 1_000_000 if isinstance(value, timedelta) or value is EPOCH else value


def test_no_update_of_sqlite_returns_whether_something_is_null() -> None:
    # Version 3.40, which Debian 12 has, answers as if nothing could be null where the table's first column cannot. A token's can,
    # as it is the number of the row.
    answers = {
        name: text.partition("returning")[2] for name in SQLITE.names for text in SQLITE.statements(name, 1) if _updates(text)
    }
    assert [name for name, answer in answers.items() if re.search(r"\bis (not )?null\b", answer)] == ["revoke_token"]


def _updates(text: str) -> bool:
    return re.match(r"(with .*?\)\s*)?update\b", text, re.DOTALL) is not None
