"""Circuit breakers shared through the database."""

from __future__ import annotations

from windlass.core.blocking import twin_of
from windlass.core.breaker import Admission, BreakerPermit, BreakerSpec, BreakerState
from windlass.store.calls import breakers as calls
from windlass.store.noun import Noun, verb


class Breakers(Noun):
    """A breaker is closed until failures in a row open it; then one caller at a time over the fleet may try."""

    count_failures, count_failures_sync = verb(calls.count_failures)
    force_open, force_open_sync = verb(calls.force_open)
    reset, reset_sync = verb(calls.reset)
    get, get_sync = verb(calls.get)
    history, history_sync = verb(calls.history)
    prune_events, prune_events_sync = verb(calls.prune_events)
    list, list_sync = verb(calls.list_breakers)
    count, count_sync = verb(calls.count)

    async def admit(self, spec: BreakerSpec, *, job_id: int | None = None, token: int | None = None) -> Admission:
        """Return whether the caller may go ahead; a probe holds its permit until it records its result or its lease ends.

        A probe without a job shows the admission's token when it records, and gives way after the breaker's `open_for`.
        Raises LeaseLost when the probe's job is not held by this token.
        """
        caller = BreakerPermit(job_id, token)
        seen = await self._run(calls.look(spec, caller))
        return await self._run(calls.admit(spec, caller)) if seen is None else seen

    admit_sync = twin_of(admit)

    async def record(
        self, spec: BreakerSpec, *, succeeded: bool, failures: int = 0, job_id: int | None = None, token: int | None = None
    ) -> BreakerState:
        """Record a probe's result, a success, or `failures` more; returns the state after it.

        Failures of all processes are counted together and open the breaker at its threshold; a success begins a new row.

        A probe records before its job is finished: the finish gives the permit back.
        """
        caller = BreakerPermit(job_id, token)
        return await self._run(calls.record(spec, caller, succeeded=succeeded, failures=failures))

    record_sync = twin_of(record)
