"""Requeues that try a few letters first."""

from __future__ import annotations

from windlass.core.canary import Canary, CanaryState
from windlass.store.calls import canaries
from windlass.store.noun import Noun, verb


class Canaries(Noun):
    """Requeues of many letters, of which a few are tried before the others."""

    start, start_sync = verb(canaries.start)
    get, get_sync = verb(canaries.get)
    list, list_sync = verb(canaries.list_canaries)
    cancel, cancel_sync = verb(canaries.cancel)
    advance, advance_sync = verb(canaries.advance)

    async def advance_all(self) -> tuple[tuple[Canary, ...], bool, bool]:
        """Do the next step of each that is under way; returns those that moved, whether to go on at once, and whether none is."""
        active = await self._run(canaries.list_active())
        steps = [await self.advance(canary_id) for canary_id in active]
        moved = tuple(one for one in steps if one is not None)
        return moved, any(one.state is CanaryState.REQUEUING for one in moved), not active
