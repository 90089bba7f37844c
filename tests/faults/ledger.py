"""What processes under attack write down outside the database: a line is in the file before the next step is taken."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

VARIABLE = "WINDLASS_TEST_LEDGER"


def now_ns() -> int:
    """Read the clock that every process of the machine shares and that nobody can set."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


class Line(NamedTuple):
    """One line: when, what, and the rest as it was written."""

    at_ns: int
    word: str
    pid: int
    fields: tuple[str, ...]


class Ledger:
    """Appends lines to a file of this process's own, each in one write, so that a kill takes nothing back."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file = -1
        self._pid = -1

    def open(self) -> None:
        """Open the file now, while there are file descriptors."""
        self._pid = os.getpid()
        self._file = os.open(self._folder / f"{self._pid}.ledger", os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)

    def write(self, word: str, *fields: object) -> None:
        """Write one line; fields hold no spaces."""
        if self._pid != os.getpid():
            self.open()
        os.write(self._file, f"{now_ns()} {word} {' '.join(map(str, fields))}\n".encode())


def ledger_of_environment() -> Ledger:
    """Give the ledger that this process was started with."""
    return Ledger(Path(os.environ.get(VARIABLE, "/tmp")))


def read_ledger(folder: Path) -> Iterator[Line]:
    """Read every line of every process; a line that a kill cut in two is left out."""
    for path in sorted(folder.glob("*.ledger")):
        pid = int(path.stem)
        with path.open(encoding="utf-8") as file:
            for text in file:
                parts = text.split()
                if text.endswith("\n") and len(parts) >= 2:
                    yield Line(int(parts[0]), parts[1], pid, tuple(parts[2:]))
