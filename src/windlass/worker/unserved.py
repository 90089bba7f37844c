"""Warns of waiting jobs that no worker would ever run."""

from __future__ import annotations

import asyncio

from windlass.core.job import JobState
from windlass.core.unserved import find_unserved
from windlass.errors import StoreError
from windlass.store import Store
from windlass.worker.worker_log import log

_FIRST_S = 2.0
_EVERY_S = 15.0
_MOST_WARNED = 100
"""Names come from enqueuers, and there may be any number."""


class Unserved:
    """Looks now and then, and warns once of each task and lane."""

    def __init__(self, store: Store) -> None:
        """Read counts and workers from `store`."""
        self._store = store
        self._warned: set[tuple[str, str]] = set()

    async def keep(self) -> None:
        """Look until cancelled."""
        await asyncio.sleep(_FIRST_S)
        while True:
            try:
                await self._look()
            except StoreError as error:
                log.debug("could not look for jobs that no worker runs: %s", error)
            await asyncio.sleep(_EVERY_S)

    async def _look(self) -> None:
        counts = await self._store.count_jobs()
        if not any(count.state is JobState.PENDING for count in counts):
            return
        for found in find_unserved(counts, await self._store.workers.list()):
            if (found.task, found.lane) not in self._warned and len(self._warned) < _MOST_WARNED:
                self._warned.add((found.task, found.lane))
                log.warning("%s", found)
