"""The indexes and triggers that the migrations leave behind, with the statements that make them."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from windlass.store import migrate

_MADE = re.compile(r"^create (?:unique )?(index|trigger) (\w+)", re.IGNORECASE)
_MADE_ON = re.compile(r"\bon (windlass_\w+)", re.IGNORECASE)
_DROPPED = re.compile(r"^drop (index|trigger|table) (\w+)", re.IGNORECASE)
# In PostgreSQL no statement of these kinds has a semicolon inside; a function's has, and is none of them.
_PLAIN = re.compile(r"^(?:create|drop) .*?;$", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r"^\s*--.*\n?", re.MULTILINE)


class SchemaObject(NamedTuple):
    """An index or a trigger."""

    kind: str
    name: str
    table: str
    sql: str


@cache
def schema_objects(dialect: str) -> dict[tuple[str, str], SchemaObject]:
    """Read the migrations, and return what they leave, by kind and name."""
    found: dict[tuple[str, str], SchemaObject] = {}
    for one in migrate.migrations(dialect):
        sql = _COMMENT.sub("", one.sql)
        for statement in migrate.statements(sql) if dialect == "sqlite" else _PLAIN.findall(sql):
            text = statement.strip()
            if made := _MADE.match(text):
                on = _MADE_ON.search(text)
                found[made[1].lower(), made[2]] = SchemaObject(made[1].lower(), made[2], on[1] if on else "", text.rstrip(";"))
            elif dropped := _DROPPED.match(text):
                _drop(found, dropped[1].lower(), dropped[2])
    return found


def _drop(found: dict[tuple[str, str], SchemaObject], kind: str, name: str) -> None:
    found.pop((kind, name), None)
    if kind == "table":
        for key in [key for key, one in found.items() if one.table == name]:
            del found[key]
