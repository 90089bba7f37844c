"""What the process of a worker takes of its machine, from one heartbeat to the next."""

from __future__ import annotations

import resource
import time
from typing import NamedTuple

from windlass.worker.memory import OwnMemory


class Usage(NamedTuple):
    """Of the process itself: what children of isolated tasks take is recorded with their runs."""

    cpu_percent: int
    """Of one core, since the last reading."""
    memory_mb: int


class ProcessUsage:
    """Reads what this process takes."""

    def __init__(self) -> None:
        """Count from now on."""
        self._memory = OwnMemory()
        self._at_s, self._cpu_s = time.monotonic(), _cpu_s()

    def read(self) -> Usage:
        """Return what was taken since the last reading."""
        at_s, cpu_s = time.monotonic(), _cpu_s()
        share = (cpu_s - self._cpu_s) / max(at_s - self._at_s, 0.001)
        self._at_s, self._cpu_s = at_s, cpu_s
        return Usage(round(share * 100), self._memory.read().now_mb)


def _cpu_s() -> float:
    own = resource.getrusage(resource.RUSAGE_SELF)
    return own.ru_utime + own.ru_stime
