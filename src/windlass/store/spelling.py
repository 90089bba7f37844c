"""Derives the SQLite text and the PostgreSQL text of a query that is written once."""

from __future__ import annotations

import re
from pathlib import Path

SQL = Path(__file__).parent / "sql"
"""Where the texts are; by its path, since `importlib.resources` takes longer to load than most commands to read."""
_CAST = re.compile(r"::[a-z]+(?:\[\])?")
_ROW_LOCK = re.compile(r"\s+for update(?: of \w+)?(?: skip locked)?")
_INDEX_HINT = re.compile(r"\s+(?:indexed by \w+|not indexed)\b")
_RETURNING = re.compile(r"\breturning [a-z]\.(\w+)")
_ARRAYS = {"= any(array(": "in (", "<> all(array(": "not in ("}
_WORDS = {
    "is not distinct from": "is",
    "is distinct from": "is not",
    "json_array_elements_text(": "json_each(",
    " ilike ": " like ",
    "string_agg(": "group_concat(",
}


def spell(text: str, dialect: str) -> str:
    """Return the text for one database.

    A common text is PostgreSQL, with the index hints of SQLite, which PostgreSQL does not get. SQLite gets no casts, no row locks
    (it has one writer) and no alias behind RETURNING, and the keywords above in its own spelling.
    """
    if dialect == "postgres":
        return _INDEX_HINT.sub("", text)
    text = _RETURNING.sub(r"returning \1", _CAST.sub("", _ROW_LOCK.sub("", text)))
    for ours, theirs in _ARRAYS.items():
        text = _unwrap(text, ours, theirs)
    for ours, theirs in _WORDS.items():
        text = text.replace(ours, theirs)
    return text


def _unwrap(text: str, ours: str, theirs: str) -> str:
    """Replace `ours`, which opens two parentheses, by `theirs`, which opens one."""
    while (at := text.find(ours)) >= 0:
        start = end = at + len(ours)
        depth = 1
        while depth:
            depth += {"(": 1, ")": -1}.get(text[end], 0)
            end += 1
        text = text[:at] + theirs + text[start:end] + text[end + 1 :]
    return text
