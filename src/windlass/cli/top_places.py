"""The places of `windlass top` where a person can be: a table with a row that is chosen, or the page of a job."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from windlass.cli.output import say_table
from windlass.cli.terminal import has_colour
from windlass.cli.top_views import Row, ordered
from windlass.cli.watching import picture_of

_HEADINGS = 2
_MARK = "> "
_MOVES = {"up": -1, "down": 1}
_PAGES = {"page up": -1, "page down": 1}


class TablePlace:
    """A table: one row is chosen, and stays so when the others move."""

    def __init__(self, title: str, columns: tuple[str, ...], spare: tuple[str, ...], sort: str | None = None) -> None:
        self.title = title
        self._columns, self._spare = columns, spare
        self._sort, self._is_reversed = sort, False
        self._found: Sequence[Row] = ()
        self._rows: Sequence[Row] = ()
        self._chosen = 0
        self._first = 0
        self._room = 1

    @property
    def chosen(self) -> Any:
        """Return what the chosen row is about; None in an empty table."""
        return self._rows[self._chosen][self._columns[0]] if self._rows else None

    @property
    def order(self) -> str:
        """Describe the order of the rows."""
        named = "as listed" if self._sort is None else f"by {self._sort.replace('_', ' ')}"
        return f"{named}, reversed" if self._is_reversed else named

    def fill(self, rows: Sequence[Row]) -> None:
        """Take what has been read."""
        self._found = rows
        self._arrange()

    def press(self, key: str) -> None:
        """Move, or change the order."""
        if key == "s":
            places = (None, *self._columns)
            self._sort = places[(places.index(self._sort) + 1) % len(places)]
            self._arrange()
        elif key == "r":
            self._is_reversed = not self._is_reversed
            self._arrange()
        else:
            self._chosen = moved(self._chosen, key, page=self._room, last=len(self._rows) - 1)

    def lines(self, room: int) -> list[str]:
        """Draw as many rows as there is room for, among them the chosen one."""
        self._room = max(1, room - _HEADINGS)
        self._first = min(max(self._first, self._chosen - self._room + 1), self._chosen)
        shown = self._rows[self._first : self._first + self._room]
        drawn = picture_of(lambda: say_table(shown, self._columns, spare=self._spare)).splitlines()
        marked = self._chosen - self._first + _HEADINGS
        if shown and marked < len(drawn):
            drawn[marked] = _marked(drawn[marked])
        return drawn

    def _arrange(self) -> None:
        chosen = self.chosen
        self._rows = ordered(self._found, self._sort, is_reversed=self._is_reversed)
        named = [row[self._columns[0]] for row in self._rows]
        self._chosen = named.index(chosen) if chosen in named else min(self._chosen, max(0, len(named) - 1))


class PagePlace:
    """The page of a job, which can be longer than the terminal."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.chosen = None
        self._lines: Sequence[str] = ()
        self._first = 0
        self._room = 1

    @property
    def order(self) -> str:
        """Describe which part of the page is shown, where that is not all of it."""
        last = min(self._first + self._room, len(self._lines))
        return "" if len(self._lines) <= self._room else f"lines {self._first + 1} to {last} of {len(self._lines)}"

    def fill(self, picture: str) -> None:
        """Take what has been drawn."""
        self._lines = picture.splitlines()

    def press(self, key: str) -> None:
        """Move up and down."""
        self._first = moved(self._first, key, page=self._room, last=len(self._lines) - self._room)

    def lines(self, room: int) -> list[str]:
        """Return as many lines as there is room for."""
        self._room = max(1, room)
        self._first = min(self._first, max(0, len(self._lines) - self._room))
        return list(self._lines[self._first : self._first + self._room])


Read = Callable[[], None]
"""Fills a place with what is in the database now."""


def moved(place: int, key: str, *, page: int, last: int) -> int:
    """Return where a key leads from a line; other keys lead nowhere."""
    wanted = place + _MOVES.get(key, 0) + _PAGES.get(key, 0) * page
    if key in {"home", "end"}:
        wanted = 0 if key == "home" else last
    return max(0, min(wanted, last))


def _marked(line: str) -> str:
    """Make a line stand out, also inside the colours of its cells."""
    if not has_colour():
        return f"{_MARK}{line}"
    return "\x1b[7m" + line.replace("\x1b[0m", "\x1b[0m\x1b[7m") + "\x1b[0m"
