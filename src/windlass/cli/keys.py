"""Keys that are pressed at a terminal, one at a time and without Enter."""

from __future__ import annotations

import os
import re
import sys
import termios
import tty
from collections import deque
from select import select
from typing import Any

from windlass.errors import ConfigError

_NAMES = {
    "\x1b": "escape",
    "\r": "enter",
    "\n": "enter",
    "\t": "right",
    "\x1b[Z": "left",
    "\x1b[A": "up",
    "\x1bOA": "up",
    "k": "up",
    "\x1b[B": "down",
    "\x1bOB": "down",
    "j": "down",
    "\x1b[C": "right",
    "\x1bOC": "right",
    "\x1b[D": "left",
    "\x1bOD": "left",
    "\x1b[5~": "page up",
    "\x1b[6~": "page down",
    " ": "page down",
    "\x1b[H": "home",
    "\x1bOH": "home",
    "\x1b[1~": "home",
    "\x1b[F": "end",
    "\x1bOF": "end",
    "\x1b[4~": "end",
    "\x7f": "escape",
    "\x08": "escape",
}
# What a terminal sends for one key: a sequence, or a character.
_ONE = re.compile(r"\x1b\[[0-9;?]*[@-~]|\x1bO.|.", re.DOTALL)
_UNFINISHED = re.compile(r"\x1b(\[[0-9;?]*|O)?$")
# How long the rest of a sequence may take: after that it was the key Esc.
_REST_S = 0.05
_MOST = 1024
END = "end of input"
"""Returned once the terminal is closed."""


class PressedKeys:
    """The keys of the standard input; they arrive between `take` and `give_back`."""

    def __init__(self) -> None:
        self._file = sys.stdin.fileno()
        if not os.isatty(self._file):
            raise ConfigError(
                "the standard input is not a terminal, so no key can be read; in a script use `windlass top --once` or --json"
            )
        self._before: list[Any] | None = None
        self._pressed: deque[str] = deque()

    def take(self) -> None:
        """Let keys arrive at once and unseen; Ctrl-C and Ctrl-Z stay what they are."""
        self._before = termios.tcgetattr(self._file)
        tty.setcbreak(self._file)

    def give_back(self) -> None:
        """Make the terminal what it was before; doing it twice does no harm."""
        if self._before is not None:
            termios.tcsetattr(self._file, termios.TCSADRAIN, self._before)
            self._before = None

    def next(self, patience_s: float) -> str | None:
        """Wait so long for a key, and return its name or character; None where no key was pressed."""
        if not self._pressed and self._is_there(patience_s):
            self._read()
        return self._pressed.popleft() if self._pressed else None

    def _is_there(self, patience_s: float) -> bool:
        return bool(select([self._file], [], [], patience_s)[0])

    def _read(self) -> None:
        text = self._more()
        while text and _UNFINISHED.search(text) and self._is_there(_REST_S):
            text += (rest := self._more())
            if not rest:
                break
        self._pressed += [_NAMES.get(one, one) for one in _ONE.findall(text)] if text else [END]

    def _more(self) -> str:
        try:
            return os.read(self._file, _MOST).decode(errors="replace")
        except OSError:
            # The terminal has been closed.
            return ""
