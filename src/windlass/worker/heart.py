"""Keeps the process's leases alive, whatever its handlers do to the event loop."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from windlass.core.blocking import run
from windlass.core.job import Held
from windlass.ports import Renewals
from windlass.worker.worker_log import log

BEATS_PER_LEASE = 4
_AFTER_FAILURE_S = 0.5


class Hold(NamedTuple):
    """A lease this process holds; without `started_at` its job still waits for a slot."""

    id: int
    token: int
    started_at: datetime | None


class Beat(NamedTuple):
    """What one renewal asked for, and the answer."""

    asked: Sequence[Hold]
    held: Sequence[Held]
    at: float
    """When it was asked, by the steady counter: what it granted is counted from here."""


class Heart:
    """A thread that renews every lease several times in its length, and at once when asked to."""

    def __init__(
        self,
        store: Renewals,
        *,
        lease: timedelta,
        leases: Callable[[], Sequence[Hold]],
        answered: Callable[[Beat], None],
        renewed: Callable[[], None],
        monotonic: Callable[[], float],
    ) -> None:
        """Renew what `leases` lists in a blocking store, on its own thread; calls `answered` with the answer, then `renewed`."""
        self._monotonic = monotonic
        self._store = store
        self._lease = lease
        self._leases = leases
        self._answered = answered
        self._renewed = renewed
        self._wake = threading.Event()
        self._is_closing = False
        self._thread = threading.Thread(target=self._live, name="windlass-heart", daemon=True)

    def start(self) -> None:
        """Begin to renew."""
        self._thread.start()

    def beat(self) -> None:
        """Renew now: a job that runs here may have been cancelled."""
        self._wake.set()

    def close(self, within: float) -> None:
        """Stop beating; waits so many seconds for a renewal that is under way."""
        self._is_closing = True
        self._wake.set()
        self._thread.join(within)

    def _live(self) -> None:
        pause = self._lease.total_seconds() / BEATS_PER_LEASE
        while not self._is_closing:
            self._wake.wait(pause if self._renew() else min(pause, _AFTER_FAILURE_S))
            self._wake.clear()

    def _renew(self) -> bool:
        leases = self._leases()
        if not leases:
            return True
        at = self._monotonic()
        try:
            self._answered(Beat(leases, run(self._store.renew(leases, self._lease)), at))
        except Exception as error:  # noqa: BLE001 - the heart may never stop
            log.warning("%d leases could not be renewed: %s", len(leases), error)
            return False
        self._renewed()
        return True
