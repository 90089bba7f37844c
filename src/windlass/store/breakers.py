"""Circuit breakers shared through the database."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from windlass.core.audit import Actor, Deed
from windlass.core.breaker import Admission, Breaker, BreakerEvent, BreakerSpec, BreakerState, Permit
from windlass.core.payload import encode_object
from windlass.core.tally import Tally
from windlass.store.calls import breakers as calls
from windlass.store.calls import tally
from windlass.store.calls.audit import audited
from windlass.store.calls.call import Call
from windlass.store.calls.reads import MAX_LIST

if TYPE_CHECKING:
    from windlass.store.database import Database


class SqlBreakers:
    """A breaker is closed until failures in a row open it; then one caller at a time over the fleet may try."""

    def __init__(self, database: Database, actor: Actor | None = None) -> None:
        """Speak to `database`; `actor` is whom the audit log names."""
        self._db = database
        self._actor = actor

    async def admit(self, spec: BreakerSpec, *, job_id: int | None = None, token: int | None = None) -> Admission:
        """Ask to go ahead; one that is let through as the probe holds the permit until it records or its lease ends.

        A probe without a job shows the admission's token when it records, and gives way after the breaker's `open_for`.
        Raises LeaseLost when the probe's job is not held by this token.
        """
        caller = Permit(job_id, token)
        seen = await self._db.run(calls.look(spec, caller))
        return await self._db.run(calls.admit(spec, caller)) if seen is None else seen

    async def record(
        self, spec: BreakerSpec, *, succeeded: bool, failures: int = 0, job_id: int | None = None, token: int | None = None
    ) -> BreakerState:
        """Record a probe's result, a success, or `failures` more; returns the state after it.

        Failures of all processes are counted together and open the breaker at its threshold; a success begins a new row.

        A probe records before its job is finished: the finish gives the permit back.
        """
        caller = Permit(job_id, token)
        return await self._db.run(calls.record(spec, caller, succeeded=succeeded, failures=failures))

    async def count_failures(self, name: str) -> int:
        """Count the failures in a row of a closed breaker, over all processes."""
        return await self._db.run(calls.count_failures(name))

    async def reset(self, name: str) -> Breaker | None:
        """Close a breaker, whoever is trying it; nothing when it has never left closed."""
        return await self._db.run(_reset(name, self._actor))

    async def force_open(self, name: str, for_: timedelta | None = None) -> Breaker:
        """Open a breaker, whoever is trying it: for a while, or until it is reset."""
        return await self._db.run(_force_open(name, for_, self._actor))

    async def get(self, name: str) -> Breaker | None:
        """Read one; nothing when it has never left closed."""
        return await self._db.run(calls.get(name))

    async def history(self, name: str, limit: int = MAX_LIST) -> Sequence[BreakerEvent]:
        """Read the changes of one, newest first."""
        return await self._db.run(calls.history(name, limit))

    async def prune_events(self, keep: timedelta = calls.KEEP_EVENTS, *, limit: int = 1000) -> int:
        """Forget changes older than `keep`, but for the last of each; returns how many."""
        return await self._db.run(calls.prune_events(keep, limit))

    async def list(self, *, after: str = "", limit: int = MAX_LIST) -> Sequence[Breaker]:
        """Read those that ever left closed, by name, page by page."""
        return await self._db.run(calls.list_breakers(after, limit))

    async def count(self) -> Tally:
        """Count them, up to a bound."""
        return await self._db.run(tally.count("count_breakers"))


def _reset(name: str, actor: Actor | None) -> Call[Breaker | None]:
    def tell(left: Breaker | None) -> Deed:
        return Deed("reset", f"breaker:{name}", "done" if left is not None else "refused")

    return audited(calls.reset(name), actor, tell)


def _force_open(name: str, for_: timedelta | None, actor: Actor | None) -> Call[Breaker]:
    def tell(left: Breaker) -> Deed:
        until = None if left.probe_at is None else left.probe_at.isoformat()
        return Deed("force open", f"breaker:{name}", details=encode_object({"until": until}))

    return audited(calls.force_open(name, for_), actor, tell)
