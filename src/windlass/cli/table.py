"""Rows that a person reads in a terminal."""

from __future__ import annotations

from collections.abc import Sequence


def table(headings: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Line up cells under their headings; nothing is shown as a dash."""
    lines = [list(headings), *([_cell(value) for value in row] for row in rows)]
    widths = [max(len(line[place]) for line in lines) for place in range(len(headings))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines)


def _cell(value: object) -> str:
    return "-" if value is None else " ".join(str(value).split())
