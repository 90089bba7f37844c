"""Shows a list again and again: in place at a terminal, one block after the other elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import redirect_stdout, suppress
from datetime import timedelta
from io import StringIO
from typing import NoReturn

from windlass.cli.screen import dim, draw, screen
from windlass.cli.terminal import is_terminal, size
from windlass.core.durations import format_duration, parse_duration
from windlass.core.one_line import one_line
from windlass.errors import InvalidInput, WindlassError

LEAST = timedelta(milliseconds=500)
_MOST = timedelta(days=1)
# The line that is shown below the list, and the one where the cursor stays.
_RESERVED = 2


def read_seconds(text: str, *, field: str = "watch") -> timedelta:
    """Read how long to wait between two looks."""
    try:
        found = parse_duration(text, field=field)
    except InvalidInput:
        found = timedelta()
    if not LEAST <= found <= _MOST:
        rest = ", or stand alone as the last option" if field == "watch" else ""
        raise InvalidInput(field, text, f"must be seconds from 0.5 to 86400, as in --{field} 5{rest}")
    return found


def watch(show: Callable[[], object], every: timedelta) -> None:
    """Call what prints a list until Ctrl-C, which is a good end; an error of a later look is shown in its place."""
    is_drawn = is_terminal() and size()[1] > _RESERVED
    with suppress(KeyboardInterrupt):
        # What is wrong at once is an error as without --watch.
        picture = picture_of(show) if is_drawn else _block(show)
        if not is_drawn:
            _print_blocks(show, every)
        with screen(lambda: picture):
            while True:
                _draw(picture, every)
                time.sleep(every.total_seconds())
                picture = picture_or_problem(show)


def _block(show: Callable[[], object]) -> str:
    show()
    sys.stdout.flush()
    return ""


def _print_blocks(show: Callable[[], object], every: timedelta) -> NoReturn:
    while True:
        time.sleep(every.total_seconds())
        sys.stdout.write("\n")
        try:
            show()
        except WindlassError as error:
            sys.stderr.write(f"windlass: {one_line(str(error))}\n")
        sys.stdout.flush()


class _TerminalText(StringIO):
    """Takes what a command prints for a terminal."""

    def isatty(self) -> bool:
        return True


def picture_of(show: Callable[[], object]) -> str:
    """Return what a command would print at a terminal."""
    text = _TerminalText()
    with redirect_stdout(text):
        show()
    return text.getvalue()


def picture_or_problem(show: Callable[[], object]) -> str:
    """Return what a command would print at a terminal, or why it cannot."""
    try:
        return picture_of(show)
    except WindlassError as error:
        return f"windlass: {one_line(str(error))}\n"


def _draw(picture: str, every: timedelta) -> None:
    """Draw a picture and, below it, how often it is drawn; what is below the terminal's end is left out."""
    lines = picture.splitlines()
    room = size()[1] - _RESERVED
    note = f"every {format_duration(every)}, Ctrl-C ends"
    if len(lines) > room:
        note += f"; {len(lines) - room} lines do not fit"
    draw([*lines[:room], dim(note)])
