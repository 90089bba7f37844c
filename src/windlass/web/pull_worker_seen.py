"""Pull workers that sent a request: in the registry within a moment, and then at most every few seconds."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from windlass.app import Windlass
from windlass.core.worker import MAX_SEEN
from windlass.errors import WindlassError

log = logging.getLogger("windlass.web")

_EVERY_S = 10.0
_GATHER_S = 0.1
_MOST_KNOWN = 10_000


class PullWorkersSeen:
    """Writes the workers that sent a request, many at once; what does not fit is written at their next request."""

    def __init__(self, app: Windlass) -> None:
        """Write to the application's store."""
        self._app = app
        self._written: dict[str, float] = {}
        self._seen: dict[str, str] = {}
        self._wake = asyncio.Event()

    def note(self, worker: str, address: str) -> None:
        """Note a worker."""
        now = time.monotonic()
        if now - self._written.get(worker, -_EVERY_S) < _EVERY_S or len(self._seen) >= MAX_SEEN:
            return
        if len(self._written) >= _MOST_KNOWN:
            self._written.clear()
        self._written[worker] = now
        self._seen[worker] = address
        self._wake.set()

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[None]:
        """Write in the background for as long as the block lasts."""
        async with asyncio.TaskGroup() as group:
            writer = group.create_task(self._write())
            try:
                yield
            finally:
                writer.cancel()

    async def _write(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            seen, self._seen = self._seen, {}
            try:
                await self._app.workers.pulled(seen)
            except WindlassError as error:
                log.warning("pull workers could not be noted as seen: %s", error)
            # Workers that come at the same time are written together.
            await asyncio.sleep(_GATHER_S)
