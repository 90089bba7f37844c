"""Records what long runs have logged so far, so that their log can be read while they run."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from windlass.core.blocking import run
from windlass.ports import Renewals
from windlass.worker.logs import LogExcerpt
from windlass.worker.worker_log import log

MOST_BYTES = 1_048_576
"""How much is written at once; what does not fit comes first the next time."""


class RunLog(NamedTuple):
    """What a run has logged, and under which lease."""

    id: int
    token: int
    excerpt: LogExcerpt


class _Recorded(NamedTuple):
    round: int
    added: int


class LogRecorder:
    """Writes each excerpt that has grown since it was last written; on the heart's thread, after a renewal."""

    def __init__(self, store: Renewals, logs: Callable[[], Iterable[RunLog]]) -> None:
        """Write what `logs` lists into a blocking store."""
        self._store = store
        self._logs = logs
        self._round = 0
        self._recorded: dict[tuple[int, int], _Recorded] = {}

    def record(self) -> None:
        """Write what is new; a failure is logged, and the next round tries again."""
        self._round += 1
        logs = {(one.id, one.token): one.excerpt for one in self._logs()}
        self._recorded = {lease: last for lease, last in self._recorded.items() if lease in logs}
        # Counted before the text is taken: what is logged in between is written once more.
        grown = {lease: excerpt.added for lease, excerpt in logs.items() if excerpt.added != self._last(lease).added}
        batch: list[tuple[int, int, str]] = []
        size = 0
        for lease in sorted(grown, key=lambda one: self._last(one).round):
            text = logs[lease].text() or ""
            size += len(text.encode())
            if size > MOST_BYTES:
                break
            batch.append((*lease, text))
        if not batch:
            return
        try:
            run(self._store.record_logs(batch))
        except Exception as error:  # noqa: BLE001 - on the heart's thread, which may never stop
            log.debug("the log of %d runs could not be recorded: %s", len(batch), error)
            return
        self._recorded |= {(job_id, token): _Recorded(self._round, grown[job_id, token]) for job_id, token, _ in batch}

    def _last(self, lease: tuple[int, int]) -> _Recorded:
        return self._recorded.get(lease, _NEVER)


_NEVER = _Recorded(0, 0)
