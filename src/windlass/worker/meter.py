"""What a run costs its process."""

from __future__ import annotations

import resource

from windlass.worker.memory import OwnMemory
from windlass.worker.wire import Cost


class Meter:
    """What a run costs this process and the processes it waited for."""

    def __init__(self) -> None:
        """Open once what is read for every run."""
        self._memory = OwnMemory()
        self._started_s = 0.0

    def start(self) -> None:
        """Begin a run."""
        self._memory.reset()
        self._started_s = _cpu_time_s()

    def read(self) -> Cost:
        """Return the cost since `start`."""
        total = _cpu_time_s()
        memory = self._memory.read()
        return Cost(round((total - self._started_s) * 1000), memory.peak_mb, round(total * 1000), memory.now_mb)


def _cpu_time_s() -> float:
    own = resource.getrusage(resource.RUSAGE_SELF)
    waited = resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + waited.ru_utime + waited.ru_stime
