"""Tables at a terminal: as wide as it is, with coloured states and relative times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import Enum
from typing import Any, NamedTuple

from rich.box import Box
from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from windlass.cli.output import NOTHING, cell
from windlass.cli.relative_time import now_here, relative
from windlass.cli.terminal import STYLES, console, size

_GAP = 2
_SHORT_TEXT = 12
_SHORTEST_TEXT = 4
_STATES = frozenset({"state", "status"})
# A state, a length of time or a bar without its end would be another one.
_WHOLE = _STATES | {"took", "timeline"}
_ERRORS = frozenset({"error", "last_error"})
# Nothing but a line below the headings.
_RULED = Box("    \n    \n ── \n    \n    \n    \n    \n    \n")


class _Column(NamedTuple):
    """A column as it would be with all the room there is."""

    name: str
    cells: list[Text]
    can_be_cut: bool
    """Whether it holds text: a number, a state or a time without its end would be another one."""
    is_number: bool

    @property
    def heading(self) -> str:
        return self.name.replace("_", " ")

    @property
    def is_empty(self) -> bool:
        return all(one.plain == NOTHING for one in self.cells)

    @property
    def content(self) -> int:
        return max((cell_len(one.plain) for one in self.cells), default=0)

    @property
    def wanted(self) -> int:
        return max(self.content, cell_len(self.heading))

    @property
    def readable(self) -> int:
        """Return how narrow it may become before another column is better left out."""
        return min(self.wanted, _SHORT_TEXT) if self.can_be_cut else self.wanted

    def least(self, text: int) -> int:
        """Return how narrow the column may become where texts may be cut to `text`."""
        return min(self.wanted, text) if self.can_be_cut else max(self.content, _SHORTEST_TEXT)


def draw_table(rows: Sequence[Mapping[str, Any]], columns: Sequence[str], spare: Sequence[str] = ()) -> None:
    """Draw rows under their headings, in lines that fit the terminal.

    Where it is too narrow, columns that are empty are left out first, then those of `spare` in that order, then the widest
    texts are cut, then the last columns are left out.
    """
    out = console()
    if not rows:
        out.print(Text("nothing to list", style="dim"))
        return
    now = now_here()
    made = [_column(name, [row.get(name) for row in rows], now) for name in columns]
    out.print(_table(_kept(made, spare, size()[0]), size()[0]))


def _table(kept: list[_Column], room: int) -> Table:
    table = Table(box=_RULED, show_edge=False, pad_edge=False, padding=(0, 0, 0, 1), header_style="bold", border_style="dim")
    for one, width in zip(kept, _widths(kept, room), strict=True):
        table.add_column(
            one.heading, justify="right" if one.is_number else "left", width=width, no_wrap=True, overflow="ellipsis"
        )
    for line in zip(*(one.cells for one in kept), strict=True):
        table.add_row(*line)
    return table


def _column(name: str, values: list[Any], now: datetime) -> _Column:
    known = [value for value in values if value is not None]
    is_number = bool(known) and all(isinstance(value, int) and not isinstance(value, bool) for value in known)
    can_be_cut = name not in _WHOLE and any(isinstance(value, str) and not isinstance(value, Enum) for value in known)
    return _Column(name, [_cell(name, value, now) for value in values], can_be_cut, is_number)


def _cell(name: str, value: Any, now: datetime) -> Text:
    if value is None:
        return Text(NOTHING, style="dim")
    if isinstance(value, datetime):
        return Text(relative(value, now))
    text = cell(value, widest=None)
    return Text(text, style=STYLES.get(text, "") if name in _STATES else "red" if name in _ERRORS else "")


def _taken(widths: Sequence[int]) -> int:
    return sum(widths) + _GAP * (len(widths) - 1)


def _kept(columns: list[_Column], spare: Sequence[str], room: int) -> list[_Column]:
    """Choose the columns there is room for."""
    kept = columns
    if _taken([one.wanted for one in kept]) > room:
        kept = [one for one in columns if not one.is_empty] or columns[:1]
    for name in spare:
        if _taken([one.readable for one in kept]) > room:
            kept = [one for one in kept if one.name != name]
    while len(kept) > 1 and _taken([one.least(_SHORTEST_TEXT) for one in kept]) > room:
        kept = kept[:-1]
    return kept


def _widths(columns: list[_Column], room: int) -> list[int]:
    """Cut the widest column by one until the line fits: texts down to a few characters, then headings, then the rest."""
    widths = [one.wanted for one in columns]
    for shortest in (_SHORT_TEXT, _SHORTEST_TEXT):
        least = [one.least(shortest) for one in columns]
        while _taken(widths) > room:
            widest, place = max(
                (have if have > few else 0, place) for place, (have, few) in enumerate(zip(widths, least, strict=True))
            )
            if not widest:
                break
            widths[place] -= 1
    return [min(width, room) for width in widths]
