"""How much memory a process holds, and the watch that ends a child which takes too much."""

from __future__ import annotations

import os
import resource
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

_MB = 2**20
_PAGE = resource.getpagesize()
_INTERVAL_S = 0.05


def read_resident_mb(pid: int) -> int | None:
    """Return how much memory a process holds now; None where there is no /proc or no such process."""
    try:
        text = Path(f"/proc/{pid}/statm").read_text()
    except OSError:
        return None
    return int(text.split()[1]) * _PAGE // _MB


class Resident(NamedTuple):
    """Memory in MB, rounded up."""

    peak_mb: int
    now_mb: int


class OwnMemory:
    """The memory of this process; its peak counts from the last reset, or from its start where it cannot be reset."""

    def __init__(self) -> None:
        """Open once what is read for every job."""
        self._status = _open("/proc/self/status", os.O_RDONLY)
        self._clear = _open("/proc/self/clear_refs", os.O_WRONLY)

    def reset(self) -> None:
        """Forget the peak so far."""
        if self._clear is not None:
            with suppress(OSError):
                os.pwrite(self._clear, b"5", 0)

    def read(self) -> Resident:
        """Return the peak and what is held now."""
        if self._status is not None:
            text = os.pread(self._status, 8192, 0)
            return Resident(_field_mb(text, b"VmHWM:"), _field_mb(text, b"VmRSS:"))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        # Kilobytes, but bytes on macOS.
        peak_mb = -(-peak // (1024 if sys.platform != "darwin" else _MB))
        return Resident(peak_mb, peak_mb)


def _field_mb(text: bytes, name: bytes) -> int:
    _, _, rest = text.partition(name)
    return -(-int(rest.split(None, 1)[0]) // 1024)


def _open(path: str, flags: int) -> int | None:
    try:
        return os.open(path, flags | os.O_CLOEXEC)
    except OSError:
        return None


class _Watched(NamedTuple):
    """A child under watch."""

    limit_mb: int
    exceeded: Callable[[int], None]


class MemoryWatch:
    """Looks at running children twenty times a second, on a thread of its own: a busy event loop must not stop it.

    Resident memory, not RLIMIT_AS: address space counts what is only reserved (thread arenas, mapped files, the heaps of
    other runtimes), so a limit on it fails programs that hold little, and every subprocess would inherit it. The price is
    that a child may pass its limit by what it can touch in one interval.
    """

    def __init__(self) -> None:
        """Start no thread before there is something to watch."""
        self._watched: dict[int, _Watched] = {}
        self._lock = threading.Lock()
        self._work = threading.Event()
        self._thread: threading.Thread | None = None

    def add(self, pid: int, limit_mb: int, exceeded: Callable[[int], None]) -> None:
        """Call `exceeded` with the size, from the watching thread, when the process holds more than `limit_mb`.

        It is called once, not after `remove`, and must neither wait nor come back here.
        """
        with self._lock:
            self._watched[pid] = _Watched(limit_mb, exceeded)
            if self._thread is None:
                self._thread = threading.Thread(target=self._main, name="windlass-memory", daemon=True)
                self._thread.start()
            self._work.set()

    def remove(self, pid: int) -> None:
        """Look at the process no more."""
        with self._lock:
            self._watched.pop(pid, None)

    def _main(self) -> None:
        pause = threading.Event()
        while True:
            self._work.wait()
            pause.wait(_INTERVAL_S)
            with self._lock:
                everyone = list(self._watched.items())
                if not everyone:
                    self._work.clear()
            for pid, watched in everyone:
                self._look(pid, watched)

    def _look(self, pid: int, watched: _Watched) -> None:
        held = read_resident_mb(pid)
        if held is None or held <= watched.limit_mb:
            return
        with self._lock:
            # Called under the lock: after the removal of a process no call for it may come.
            if self._watched.get(pid) is watched:
                del self._watched[pid]
                watched.exceeded(held)
