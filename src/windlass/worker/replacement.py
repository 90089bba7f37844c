"""Ends a process whose event loop is blocked for good, for its supervisor to start anew."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from windlass.core.blocking import run
from windlass.core.outcome import Ending
from windlass.errors import StoreError
from windlass.store import Store
from windlass.worker.acker import BATCH
from windlass.worker.worker_log import log


class Replacement:
    """Records the last ends through a blocking store, then ends the process."""

    def __init__(self, store: Store, end_process: Callable[[], None]) -> None:
        """`end_process` is not expected to return."""
        self._store = store
        self._end_process = end_process

    def record_blocks(self, worker: str, loop_blocks: int) -> None:
        """Record how often the event loop was blocked: the heartbeat that does it otherwise runs on the blocked loop."""
        try:
            run(self._store.workers.seen(worker, 0, loop_blocks=loop_blocks))
        except Exception as error:  # noqa: BLE001 - the process is to end, whatever cannot be counted
            log.warning("worker %s could not record its blocked event loop: %s", worker, error)

    def replace(self, last_endings: Callable[[], Sequence[Ending]]) -> None:
        """Record what can be recorded and end the process; what cannot is left to leases that run out."""
        try:
            self._record(last_endings())
        except Exception:
            log.exception("the last ends of runs could not be recorded, their leases will run out")
        finally:
            self._end_process()

    def _record(self, endings: Sequence[Ending]) -> None:
        for start in range(0, len(endings), BATCH):
            try:
                run(self._store.finish(endings[start : start + BATCH]))
            except StoreError as error:
                log.error("the last ends of runs could not be recorded, their leases will run out: %s", error)  # noqa: TRY400
