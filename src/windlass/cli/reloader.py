"""Runs a command in a process of its own and starts it anew when the application's files change."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

_FLAG = "--reload"
_LOOK_S = 0.25
_ENDINGS = (".py", ".toml")
_NOT_THEIRS = frozenset({"__pycache__", "node_modules", "site-packages", "build", "dist"})
_PR_SET_PDEATHSIG = 1

Seen = dict[str, tuple[int, int]]


def option(command: F) -> F:
    """Add `--reload` to a command."""
    told = "For development: start anew when a .py or .toml file below the current folder changes."
    return click.option(_FLAG, "is_reloading", is_flag=True, help=told)(command)


def reload() -> NoReturn:
    """Run this command without `--reload`, again and again, until a signal."""
    typed = [argument for argument in sys.argv[1:] if argument != _FLAG]
    sys.exit(Reloader([sys.executable, "-m", "windlass", *typed], Path.cwd()).run())


class Reloader:
    """Keeps one process running, with the files as they are now."""

    def __init__(
        self,
        command: Sequence[str],
        folder: Path,
        *,
        elsewhere: Callable[[], Iterable[Path]] = tuple,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        """Describe what to run, below which folder its files are, and how to list files that are elsewhere."""
        self._command, self._folder = command, folder
        self._elsewhere, self._environ = elsewhere, environ
        self._signals: list[int] = []

    def run(self) -> int:
        """Run until a signal; returns the exit code of the last process."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._note)
        seen = self._look()
        while True:
            process = self._start()
            changed = self._wait_for_change(process, seen)
            if changed is None:
                return self._end(process)
            seen = changed
            if not self._stop(process):
                return self._end(process)

    def _start(self) -> subprocess.Popen[bytes]:
        # In a group of its own: a Ctrl-C of the terminal reaches only us, and we pass it on.
        return subprocess.Popen(  # noqa: S603 - our own command
            self._command,
            env=self._environ,
            process_group=0,
            preexec_fn=_die_with_parent if sys.platform == "linux" else None,  # noqa: PLW1509 - this process has one thread
        )

    def _wait_for_change(self, process: subprocess.Popen[bytes], seen: Seen) -> Seen | None:
        """Wait until files have changed and then stayed as they are for a moment; None when a signal came first."""
        is_told = False
        while not self._signals:
            time.sleep(_LOOK_S)
            found = self._look()
            if found != seen:
                while (again := self._look_again()) != found:
                    found = again
                _say(f"{_described(seen, found)} changed; starting anew")
                return found
            if process.poll() is not None and not is_told:
                is_told = True
                _say(f"it ended with exit code {process.returncode}; it starts anew when a file changes")
        return None

    def _look_again(self) -> Seen:
        time.sleep(_LOOK_S)
        return self._look()

    def _look(self) -> Seen:
        """Return when each file was written, and how large it is; one that is being replaced just now is left out."""
        found = dict(_files(str(self._folder)))
        for path in self._elsewhere():
            with suppress(OSError):
                found[str(path)] = path.stat()
        return {path: (told.st_mtime_ns, told.st_size) for path, told in found.items()}

    def _stop(self, process: subprocess.Popen[bytes]) -> bool:
        """End the process as its own grace allows; returns whether no signal came to us meanwhile.

        When files change once more while it ends, what runs is given back at once: the user is waiting.
        """
        process.terminate()
        seen, is_hurried = self._look(), False
        while process.poll() is None and not self._signals:
            time.sleep(_LOOK_S)
            if not is_hurried and self._look() != seen:
                is_hurried = True
                process.terminate()
        return not self._signals

    def _end(self, process: subprocess.Popen[bytes]) -> int:
        """Pass every signal on until the process has ended."""
        passed_on = 0
        while process.poll() is None:
            for number in self._signals[passed_on:]:
                process.send_signal(number)
                passed_on += 1
            time.sleep(_LOOK_S / 5)
        return max(process.returncode, 0)

    def _note(self, number: int, _frame: FrameType | None = None) -> None:
        self._signals.append(number)


def _files(folder: str) -> Iterator[tuple[str, os.stat_result]]:
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return
    if any(entry.name == "pyvenv.cfg" for entry in entries):
        return
    for entry in entries:
        try:
            if entry.is_dir(follow_symlinks=False):
                if not entry.name.startswith(".") and entry.name not in _NOT_THEIRS:
                    yield from _files(entry.path)
            elif entry.name.endswith(_ENDINGS):
                yield entry.path, entry.stat()
        except OSError:
            # It is gone already: editors write a file by its side and rename it.
            continue


def _described(before: Seen, after: Seen) -> str:
    names = sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))
    first = os.path.relpath(names[0]) if names else "nothing"
    return first if len(names) < 2 else f"{first} and {len(names) - 1} more"  # noqa: PLR2004 - one and many


def _say(text: str) -> None:
    click.echo(f"windlass: {text}", err=True)


def _die_with_parent() -> None:
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
