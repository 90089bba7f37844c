"""Sends a handler's calls to the store, from the event loop or from a thread."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from windlass.core.job import Claimed
from windlass.errors import WindlassError
from windlass.ports import Work


class StoreLink:
    """Makes the calls of one run, under its lease."""

    __slots__ = ("_job", "_loop", "_store", "is_stopping")

    def __init__(self, job: Claimed, store: Work, loop: asyncio.AbstractEventLoop) -> None:
        """Act for `job`."""
        self._job = job
        self._store = store
        self._loop = loop
        self.is_stopping = False

    async def call(self, verb: str, arguments: Mapping[str, Any]) -> Any:
        """Ask the store; raises LeaseLost when the job is no longer ours."""
        job = self._job
        match verb:
            case "progress":
                return await self._store.progress(job.id, job.token, **arguments)
            case "items":
                return list(await self._store.items.add(job.id, job.token, arguments["items"]))
        raise WindlassError(f"a handler cannot ask for {verb!r}")

    def call_sync(self, verb: str, arguments: Mapping[str, Any]) -> Any:
        """Ask from a handler's thread and wait for the answer."""
        try:
            running: asyncio.AbstractEventLoop | None = asyncio.get_running_loop()
        except RuntimeError:
            running = None
        if running is self._loop:
            raise WindlassError(f"ctx.{verb}_sync would wait for itself here; a coroutine says `await ctx.{verb}(…)`")
        return asyncio.run_coroutine_threadsafe(self.call(verb, arguments), self._loop).result()
