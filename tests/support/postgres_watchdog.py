"""Ends a test server and removes its folder once the process that started it is gone, however it went.

Run as a script with the folder as its only argument; standard input is a pipe that the parent holds open and never writes to.
"""

from __future__ import annotations

import fcntl
import os
import select
import shutil
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

PATIENCE_S = 15.0
PARENT = os.getppid()


def wait_for_parent() -> None:
    """Block until the pipe closes; a child forked by the parent may hold it open, so the parent itself is watched too."""
    while os.getppid() == PARENT:
        readable, _, _ = select.select([sys.stdin], [], [], 0.5)
        if readable:
            return


def server_pid(folder: Path) -> int | None:
    """Read the server's process id from its lock file; initdb's own helpers write theirs negated, and are not for us to end."""
    try:
        pid = int((folder / "data" / "postmaster.pid").read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return None
    return pid if pid > 0 else None


def is_busy(folder: Path) -> bool:
    """Tell whether initdb or pg_ctl is at work: both hold the lock on their output."""
    try:
        with (folder / "output").open() as output:
            fcntl.flock(output, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except FileNotFoundError:
        return False
    return False


def is_running(pid: int) -> bool:
    """Tell whether a process lives; a dead one that init has not collected yet does not count."""
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except ProcessLookupError:
        return False
    except FileNotFoundError:
        # Collected in between, or a system without /proc.
        return not Path("/proc/self").exists()


def end_server(pid: int, deadline: float) -> None:
    """Shut the server down at once; it then removes its shared memory, which a kill would leave behind."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGQUIT)
        while is_running(pid) and time.monotonic() < deadline:
            time.sleep(0.01)
        os.kill(pid, signal.SIGKILL)


def main(folder: Path) -> None:
    """Clean up; initdb and pg_ctl may outlive the parent for a moment, and would leave shared memory behind if cut off."""
    wait_for_parent()
    deadline = time.monotonic() + PATIENCE_S
    busy = True
    while busy and time.monotonic() < deadline:
        # Asked before the lock file is read: what pg_ctl started is in there once it is no longer at work.
        busy = is_busy(folder)
        if (pid := server_pid(folder)) is not None:
            end_server(pid, deadline)
        elif busy:
            time.sleep(0.02)
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    # Ctrl-C in the terminal is for the parent, which closes the pipe when it is done.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    main(Path(sys.argv[1]))
