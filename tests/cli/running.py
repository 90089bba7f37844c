"""The real command in a process of its own, while it goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Timer

_PATIENCE_S = 60


@contextmanager
def running(url: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Start a command whose output is piped; it is killed when it goes on for too long."""
    process = subprocess.Popen(
        [sys.executable, "-m", "windlass", *arguments],
        env=os.environ | {"WINDLASS_DATABASE_URL": url},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        guard = Timer(_PATIENCE_S, process.kill)
        guard.start()
        try:
            yield process
        finally:
            guard.cancel()
            process.kill()


def interrupt(process: subprocess.Popen[str]) -> tuple[str, str, int]:
    """Press Ctrl-C and return the rest of what the command wrote, and how it ended."""
    process.send_signal(signal.SIGINT)
    rest, errors = process.communicate(timeout=_PATIENCE_S)
    return rest, errors, process.returncode
