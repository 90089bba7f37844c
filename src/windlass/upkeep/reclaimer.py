"""Takes back the jobs of workers that died."""

from __future__ import annotations

import logging
from datetime import timedelta

from windlass.core.contact import Contact
from windlass.errors import StoreError
from windlass.process import current_place, is_gone
from windlass.store import Store

log = logging.getLogger("windlass.upkeep")


class Reclaimer:
    """Reclaims lost leases, but never because this process itself was cut off."""

    def __init__(self, store: Store, *, lease: timedelta) -> None:
        """Serve a store whose workers take leases of this length."""
        self._store = store
        self._contact = Contact(lease)
        self._place = current_place()

    async def round(self) -> list[int]:
        """Reclaim what is due; call it several times a lease. Returns the jobs taken back."""
        try:
            await self._find_lost_workers()
            return await self._store.reclaim(self._contact)
        except StoreError:
            self._contact.lose()
            raise

    async def _find_lost_workers(self) -> None:
        """Note which workers of this machine are gone without a word: nobody has to wait for the end of their leases."""
        if self._place is None:
            return
        gone = [worker for worker in await self._store.workers.list_neighbours(self._place) if is_gone(worker)]
        for name in await self._store.workers.lose(self._place, gone):
            log.warning("worker %s: its process is gone, its leases are taken back", name)
