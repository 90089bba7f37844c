"""Items as the rows of a table that any spreadsheet may open."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from windlass.errors import InvalidInput

MAX_COLUMNS = 1000
# What spreadsheets take for the beginning of a formula; the wide ones are what some keyboards and programs make of them.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
# Nothing in it can name a cell, a function or a program, and telephone numbers stay what they are.
_ARITHMETIC = re.compile(r"[+-][0-9 ()./,+-]*")


class Columns:
    """The fields of items, in the order in which they first came."""

    def __init__(self) -> None:
        """Start without fields."""
        self._names: dict[str, None] = {}

    def add(self, item: Mapping[str, Any]) -> None:
        """Learn the fields of an item; raises InvalidInput when there are too many for a table."""
        self._names.update(dict.fromkeys(item))
        if len(self._names) > MAX_COLUMNS:
            raise InvalidInput("format", "csv", f"the items have more than {MAX_COLUMNS} different fields; export them as jsonl")

    def heading(self) -> str:
        """Write the first line."""
        return _lines([[_harmless(name) for name in self._names]]) if self._names else ""

    def rows(self, items: Iterable[Mapping[str, Any]]) -> str:
        """Write a line for each item; what it does not have stays empty, and what has parts is written as JSON."""
        return _lines([[_cell(item.get(name)) for name in self._names] for item in items])


def _lines(rows: Iterable[Iterable[str]]) -> str:
    out = io.StringIO()
    csv.writer(out, quoting=csv.QUOTE_MINIMAL).writerows(rows)
    return out.getvalue()


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return _harmless(value)
    return json.dumps(value, ensure_ascii=False)


def _harmless(text: str) -> str:
    """Keep a spreadsheet from running a collected text as a formula: an apostrophe makes it a text."""
    if not text.startswith(_FORMULA) or _ARITHMETIC.fullmatch(text):
        return text
    return f"'{text}"
