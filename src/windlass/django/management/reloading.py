"""Keeps a worker running, anew whenever the project's code changes."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from threading import Event
from types import FrameType

from django.utils.autoreload import iter_all_python_module_files

from windlass.cli.supervised import die_with_parent
from windlass.django.management.command_line import environment

_LOOK_S = 0.5
_PATIENCE_S = 60.0
"""How long a worker may take to finish what it runs; its own grace is shorter."""


def run_reloading(arguments: Sequence[str]) -> None:
    """Run `windlass` with these arguments until a signal; ends the process with the exit code of the last worker."""
    stopped = Event()

    def stop(_number: int, _frame: FrameType | None) -> None:
        stopped.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    code = 0
    while not stopped.is_set():
        # In a group of its own: a Ctrl-C of the terminal reaches only us, and we pass it on once.
        worker = subprocess.Popen(  # noqa: S603 - our own command
            [sys.executable, "-m", "windlass", *arguments],
            env=environment(),
            process_group=0,
            preexec_fn=_die_with_us,  # noqa: PLW1509 - this process has one thread
        )
        _wait_for_change(stopped)
        worker.terminate()
        try:
            code = worker.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            worker.kill()
            code = worker.wait()
    sys.exit(code)


def _die_with_us() -> None:
    """Stop the worker in order when this process is killed and cannot do it."""
    die_with_parent(None)


def _wait_for_change(stopped: Event) -> None:
    """Wait until a file of the project's code is another, or until the end."""
    before = _modified()
    while not stopped.wait(_LOOK_S):
        now = _modified()
        changed = [file for file, at in now.items() if before.get(file) != at]
        if changed:
            sys.stdout.write(f"{changed[0]} changed; the worker starts anew\n")
            sys.stdout.flush()
            return


def _modified() -> dict[Path, float]:
    """Return when each file was last written; one that is being replaced just now is left out."""
    found: dict[Path, float] = {}
    for file in iter_all_python_module_files():
        try:
            found[file] = file.stat().st_mtime
        except OSError:
            continue
    return found
