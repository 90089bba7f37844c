"""The real command at a terminal of a given size."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from contextlib import suppress
from select import select
from typing import NamedTuple, Self

ESCAPE = re.compile(r"\x1b(?:\[[0-9;?]*[A-Za-z]|\][^\x07]*\x07)")
_PATIENCE_S = 30


class Shown(NamedTuple):
    """What a command wrote to its terminal, and how it ended."""

    raw: str
    code: int

    @property
    def text(self) -> str:
        """What a person sees, without colours and moves of the cursor."""
        return ESCAPE.sub("", self.raw)

    @property
    def lines(self) -> list[str]:
        return self.text.splitlines()

    @property
    def widest(self) -> int:
        return max((sum(2 if one == "錨" else 1 for one in line) for line in self.lines), default=0)


def at_terminal(
    columns: int,
    url: str,
    *arguments: str,
    until: Callable[[str], bool] | None = None,
    is_error: bool = False,
    **environment: str,
) -> Shown:
    """Type a command at a terminal of this width; `until` is true of what it has shown, Ctrl-C is pressed.

    The standard output is the terminal; with `is_error` the standard error is, and the output goes to a file.
    """
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    kept = {name: value for name, value in os.environ.items() if name not in {"COLUMNS", "LINES", "NO_COLOR"}}
    kept |= {"WINDLASS_DATABASE_URL": url, "TERM": "xterm-256color", **environment}
    stdout, stderr = (subprocess.DEVNULL, theirs) if is_error else (theirs, None)
    with subprocess.Popen([sys.executable, "-m", "windlass", *arguments], env=kept, stdout=stdout, stderr=stderr) as process:
        os.close(theirs)
        raw, until_end = b"", time.monotonic() + _PATIENCE_S
        # The end of a terminal is an error.
        with suppress(OSError):
            while time.monotonic() < until_end:
                if not select([ours], [], [], 1)[0]:
                    continue
                raw += os.read(ours, 65_536)
                if until is not None and until(raw.decode(errors="replace")):
                    process.send_signal(signal.SIGINT)
                    until = None
        if time.monotonic() >= until_end:
            process.kill()
    os.close(ours)
    return Shown(raw.decode().replace("\r\n", "\n"), process.returncode)


# The terminal becomes the one that Ctrl-C is typed at; a shell would see to that.
_OWN = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""


class Typed:
    """A command at a terminal whose keys are pressed."""

    def __init__(self, url: str, *arguments: str, columns: int = 120, lines: int = 30, **environment: str) -> None:
        self._ours, self._theirs = pty.openpty()
        self.resize(columns, lines)
        self._before = termios.tcgetattr(self._theirs)
        kept = {name: value for name, value in os.environ.items() if name not in {"COLUMNS", "LINES", "NO_COLOR"}}
        kept |= {"WINDLASS_DATABASE_URL": url, "TERM": "xterm-256color", **environment}
        command = [sys.executable, "-c", _OWN, *(arguments if arguments[0].startswith("-") else ("-m", "windlass", *arguments))]
        self.process = subprocess.Popen(
            command, env=kept, stdin=self._theirs, stdout=self._theirs, stderr=self._theirs, start_new_session=True
        )
        self.raw = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._ours)
        os.close(self._theirs)

    @property
    def screen(self) -> str:
        """What stands on the screen now."""
        return ESCAPE.sub("", self.frame).replace("\r", "")

    @property
    def frame(self) -> str:
        """What was drawn last, with its colours."""
        drawn = self.raw[: self.raw.rfind("\x1b[J")] if "\x1b[J" in self.raw else ""
        return drawn.rpartition("\x1b[H")[2]

    @property
    def is_restored(self) -> bool:
        """Whether the terminal is as it was before the command: its modes, its screen and its cursor."""
        modes = termios.tcgetattr(self._theirs) == self._before
        return modes and self.raw.rfind("\x1b[?1049l") > self.raw.rfind("\x1b[?1049h") and self.raw.rfind("\x1b[?25h") > 0

    def resize(self, columns: int, lines: int) -> None:
        """Give the terminal another size."""
        fcntl.ioctl(self._theirs, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def press(self, keys: str) -> None:
        """Type some keys."""
        os.write(self._ours, keys.encode())

    def wait(self, has_come: Callable[[str], bool]) -> str:
        """Read until the screen shows what is waited for, and return it."""
        until = time.monotonic() + _PATIENCE_S
        while not has_come(self.screen):
            assert time.monotonic() < until, self.screen
            self._read(1)
        return self.screen

    def end(self) -> int:
        """Wait for the end of the command, and return its exit code."""
        until = time.monotonic() + _PATIENCE_S
        while self.process.poll() is None:
            assert time.monotonic() < until, self.screen
            self._read(0.1)
        self._read(0.1)
        return self.process.returncode

    def _read(self, patience_s: float) -> None:
        if select([self._ours], [], [], patience_s)[0]:
            self.raw += os.read(self._ours, 65_536).decode(errors="replace")
