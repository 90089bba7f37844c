"""Watches over the services that tasks' breakers guard, for one process."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict

from windlass.core.breaker import BreakerState
from windlass.core.job import Claimed
from windlass.errors import StoreError
from windlass.ports import Work
from windlass.worker.run import ActiveRun
from windlass.worker.worker_log import log


class _Look:
    """Asks one at a time whether a breaker has failures; callers that come meanwhile share the next answer."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.begun = 0
        self.has_failures = False


class BreakerWatch:
    """Reports each failure to the store, and a success only where it ends a row of failures or a probe."""

    def __init__(self, store: Work) -> None:
        """Report to `store`."""
        self._store = store
        self._untold: Counter[str] = Counter()
        self._looks: defaultdict[str, _Look] = defaultdict(_Look)
        self._probes: set[tuple[int, int]] = set()

    def expect(self, probe: Claimed) -> None:
        """Note that a job was claimed to try a breaker."""
        self._probes.add((probe.id, probe.token))

    def must_record(self, active: ActiveRun) -> bool:
        """Whether a run must be reported to the store before it is finished."""
        return active.spec.breaker is not None and active.is_failure is not None

    async def record(self, active: ActiveRun) -> bool:
        """Record a run; returns whether its breaker is open now. While the store is away nothing is recorded."""
        spec, job = active.spec.breaker, active.job
        assert spec is not None  # noqa: S101 - `must_record` has seen it
        permit = (job.id, job.token)
        is_probe = permit in self._probes
        self._probes.discard(permit)
        self._untold[spec.name] = self._untold[spec.name] + 1 if active.is_failure else 0
        try:
            if not active.is_failure and not is_probe and not await self._has_failures(spec.name):
                return False
            failures, self._untold[spec.name] = self._untold[spec.name], 0
            try:
                state = await self._store.breakers.record(
                    spec, succeeded=not active.is_failure, failures=failures, job_id=job.id, token=job.token
                )
            except StoreError:
                self._untold[spec.name] += failures
                raise
        except StoreError as error:
            log.warning("breaker %s could not record job %d: %s", spec.name, job.id, error)
            return False
        return state is not BreakerState.CLOSED

    async def _has_failures(self, name: str) -> bool:
        """Whether a row of failures was there after this call began; many successes at once cost one read or two."""
        look = self._looks[name]
        wanted = look.begun + 1
        async with look.lock:
            if look.begun < wanted:
                look.begun += 1
                look.has_failures = False
                look.has_failures = await self._store.breakers.count_failures(name) > 0
            return look.has_failures
