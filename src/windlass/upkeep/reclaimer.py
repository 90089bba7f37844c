"""Takes back the jobs of workers that died."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import datetime, timedelta

from windlass.core.contact import Contact
from windlass.core.worker import Neighbour
from windlass.errors import StoreError
from windlass.process import current_place, is_gone
from windlass.store import Store

log = logging.getLogger("windlass.upkeep")

_ROUNDS_WITHOUT_LEASES = 4
"""How many rounds may pass without a look for dead workers, which have nothing that could be taken back."""


class Reclaimer:
    """Reclaims lost leases, but never because this process itself was cut off."""

    def __init__(self, store: Store, *, lease: timedelta) -> None:
        """Serve a store whose workers take leases of this length."""
        self._store = store
        self._contact = Contact(lease)
        self._place = current_place()
        self._looked_at: datetime | None = None
        self._skipped = 0

    async def round(self, unleased_at: datetime | None = None) -> list[int]:
        """Reclaim what is due; call it several times a lease. Returns the jobs taken back.

        A moment after the last round at which no lease was held, if it is known, saves a look.
        """
        is_news = unleased_at is not None and (self._looked_at is None or unleased_at > self._looked_at)
        if unleased_at is not None and is_news and self._skipped < _ROUNDS_WITHOUT_LEASES:
            self._skipped += 1
            self._touch(unleased_at)
            return []
        self._skipped = 0
        try:
            look = await self._store.workers.look_at_leases(self._place)
            await self._note_lost(look.neighbours)
            if not look.has_leases:
                self._touch(look.at)
                return []
            self._looked_at = look.at
            return await self._store.reclaim(self._contact)
        except StoreError:
            self._contact.lose()
            raise

    def _touch(self, unleased_at: datetime) -> None:
        """Count a moment without leases as contact, although nothing was written.

        A process that takes a lease after it shows by that that the database can be written to.
        """
        self._looked_at = unleased_at
        self._contact.touch(unleased_at)

    async def _note_lost(self, neighbours: Sequence[Neighbour]) -> None:
        """Record which workers of this machine have died: their leases need not run out first."""
        gone = [worker for worker in neighbours if is_gone(worker)]
        if self._place is None or not gone:
            return
        for name in await self._store.workers.lose(self._place, gone):
            log.warning("worker %s: its process is gone, its leases are taken back", name)
