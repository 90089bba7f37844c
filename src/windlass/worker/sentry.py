"""Watches over the services that tasks' breakers guard, for one process."""

from __future__ import annotations

import logging

from windlass.core.breaker import BreakerState, FailureCount
from windlass.core.job import Claimed
from windlass.errors import StoreError
from windlass.ports import Work
from windlass.worker.flight import Flight

log = logging.getLogger("windlass.worker")


class Sentry:
    """Counts failures in a row, and tells the store only what may change a breaker."""

    def __init__(self, store: Work) -> None:
        """Tell `store`."""
        self._store = store
        self._counts: dict[str, FailureCount] = {}
        self._probes: set[tuple[int, int]] = set()

    def expect(self, probe: Claimed) -> None:
        """Know that a job was claimed to try a breaker."""
        self._probes.add((probe.id, probe.token))

    def must_tell(self, flight: Flight) -> bool:
        """Note how a run went, and say whether the store must hear of it before the run is finished."""
        spec, is_failure = flight.spec.breaker, flight.is_failure
        if spec is None or is_failure is None:
            return False
        count = self._counts.setdefault(spec.name, FailureCount(spec))
        if not is_failure:
            count.restart()
        is_enough = is_failure and count.failed()
        return is_enough or (flight.job.id, flight.job.token) in self._probes

    async def tell(self, flight: Flight) -> bool:
        """Record a run; says whether its breaker is open now. A store that is away hears of the next failure."""
        spec, job = flight.spec.breaker, flight.job
        assert spec is not None  # noqa: S101 - `must_tell` has seen it
        count = self._counts[spec.name]
        self._probes.discard((job.id, job.token))
        try:
            state = await self._store.breakers.record(
                spec, succeeded=not flight.is_failure, failures=count.failures, job_id=job.id, token=job.token
            )
        except StoreError as error:
            log.warning("breaker %s could not be told of job %d: %s", spec.name, job.id, error)
            return False
        count.restart()
        return state is not BreakerState.CLOSED
