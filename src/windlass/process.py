"""Which process this is, and whether another one of the same machine still runs."""

from __future__ import annotations

import gc
import os
from contextlib import suppress
from pathlib import Path

from windlass.core.worker import Neighbour, Process

_PROC = Path("/proc")
_FEWEST_NEW_OBJECTS = 10_000
"""A few megabytes at most."""
# What follows the name of the program in /proc/<pid>/stat, which may hold spaces and parentheses itself.
_STATE, _THREADS, _START = 0, 17, 19


def current_process() -> Process | None:
    """Return the identity of this process; None where the system has no /proc."""
    place = current_place()
    with suppress(OSError, ValueError, IndexError):
        return None if place is None else Process(place, int(_stat(os.getpid())[_START]))
    return None


def current_place() -> str | None:
    """Return the machine since its start and the namespaces that its process numbers and times are counted in."""
    with suppress(OSError):
        boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}/{(_PROC / 'self/ns/pid').readlink()}/{_time_namespace()}"
    return None


def _time_namespace() -> str:
    # Older kernels have one time for all.
    with suppress(OSError):
        return str((_PROC / "self/ns/time").readlink())
    return ""


def search_less_garbage() -> None:
    """Look for unreachable objects less often, in a process that is ours from its start to its end.

    What is loaded by now stays, and a run leaves no cycles behind: at Python's own pace the search takes a quarter of the
    event loop's time when jobs are short.
    """
    gc.freeze()
    gc.set_threshold(_FEWEST_NEW_OBJECTS)


def is_gone(worker: Neighbour) -> bool:
    """Return whether a worker's process has ended; only for workers of `current_place`."""
    try:
        # Not by looking into /proc, which may hide the processes of other users.
        os.kill(worker.pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        pass
    try:
        found = _stat(worker.pid)
        # Ended, and its exit status was not read yet. Its first thread may end before the others do.
        is_over = found[_STATE] in {"Z", "X"} and int(found[_THREADS]) <= 1
        return is_over or int(found[_START]) != worker.process_start
    except (OSError, ValueError, IndexError):
        return False


def _stat(pid: int) -> list[str]:
    return (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
