"""Takes back the jobs of workers that died."""

from __future__ import annotations

from datetime import datetime, timedelta

from windlass.core.contact import Contact
from windlass.errors import StoreError
from windlass.ports import Store


class Reclaimer:
    """Reclaims lost leases, but never because this process itself was cut off."""

    def __init__(self, store: Store, *, lease: timedelta) -> None:
        """Serve a store whose workers take leases of this length."""
        self._store = store
        self._contact = Contact(lease)

    async def round(self, now: datetime | None = None) -> list[int]:
        """Reclaim what is due; call it several times a lease. Returns the jobs taken back."""
        try:
            return await self._store.reclaim(self._contact, now=now)
        except StoreError:
            self._contact.lose()
            raise
