"""Ends a process whose event loop is blocked for good, for its supervisor to start anew."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from windlass.core.blocking import run
from windlass.core.job import JobState
from windlass.core.outcome import Finish
from windlass.errors import StoreError
from windlass.worker.acker import BATCH
from windlass.worker.worker_log import log


class Endings(Protocol):
    """Where ends are recorded."""

    async def finish(self, endings: Sequence[Finish]) -> dict[int, JobState]:
        """Record how runs ended; returns the jobs whose lease still stood."""
        ...


class Replacement:
    """Records the last ends through a blocking store, then ends the process."""

    def __init__(self, store: Endings, end_process: Callable[[], None]) -> None:
        """`end_process` is not expected to return."""
        self._store = store
        self._end_process = end_process

    def replace(self, last_endings: Callable[[], Sequence[Finish]]) -> None:
        """Record what can be recorded and end the process; what cannot is left to leases that run out."""
        try:
            self._record(last_endings())
        except Exception:
            log.exception("the last ends of runs could not be recorded, their leases will run out")
        finally:
            self._end_process()

    def _record(self, endings: Sequence[Finish]) -> None:
        for start in range(0, len(endings), BATCH):
            try:
                run(self._store.finish(endings[start : start + BATCH]))
            except StoreError as error:
                log.error("the last ends of runs could not be recorded, their leases will run out: %s", error)  # noqa: TRY400
