"""Jobs that a thread runs one after another, with one hop between it and the event loop for all of them."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from windlass.core.job import Claimed
from windlass.worker.run import ActiveRun

_LONGEST_S = 0.002


class EndedCall(NamedTuple):
    """A run whose handler has come back."""

    active: ActiveRun
    value: Any
    error: BaseException | None
    seconds: float


class ThreadBatch:
    """Hands its jobs to the thread one by one, and lets the event loop take back those that have not started."""

    def __init__(self, jobs: Iterable[Claimed]) -> None:
        """Hold jobs ready."""
        self.active: ActiveRun | None = None
        self._ended_calls: deque[EndedCall] = deque()
        self._waiting = deque(jobs)
        self._lock = threading.Lock()

    def run(
        self, may_start: Callable[[int], bool], begin: Callable[[Claimed], ActiveRun], call: Callable[[ActiveRun], Any]
    ) -> None:
        """Run the jobs, in the thread; ends early once it has taken long, so that no end waits long to be reported.

        It ends too at a job that may not start: that one and those behind it are recalled.
        """
        late = time.monotonic() + _LONGEST_S
        while (job := self._next(may_start)) is not None:
            started = time.monotonic()
            self.active = active = begin(job)
            try:
                value, error = call(active), None
            except BaseException as raised:  # noqa: BLE001 - a handler may raise anything, and its job must end
                value, error = None, raised
            self.active = None
            ended = time.monotonic()
            self._ended_calls.append(EndedCall(active, value, error, ended - started))
            if ended > late:
                return

    def _next(self, may_start: Callable[[int], bool]) -> Claimed | None:
        with self._lock:
            return self._waiting.popleft() if self._waiting and may_start(self._waiting[0].token) else None

    @property
    def waiting(self) -> list[Claimed]:
        """The jobs that have not started."""
        with self._lock:
            return list(self._waiting)

    def collect(self) -> list[EndedCall]:
        """Take the runs that have come back; others may follow, and one that hangs does not hold them up."""
        # Under the lock: the thread that watches the event loop may collect as well.
        with self._lock:
            return [self._ended_calls.popleft() for _ in range(len(self._ended_calls))]

    def recall(self) -> list[Claimed]:
        """Take back what has not started; the thread starts nothing more."""
        with self._lock:
            rest = list(self._waiting)
            self._waiting.clear()
            return rest
