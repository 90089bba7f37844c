"""Lets the fleet know of a worker: its tasks, its pools, and that it is alive."""

from __future__ import annotations

import asyncio
import os
import socket
from datetime import timedelta

from windlass.core.known_task import declared_task
from windlass.core.payload import encode
from windlass.core.task import Registry
from windlass.core.worker import NewWorker
from windlass.errors import StoreError
from windlass.process import current_process
from windlass.store import Store
from windlass.worker.program import WorkerOptions
from windlass.worker.worker import Worker
from windlass.worker.worker_log import log

_BEAT = timedelta(seconds=10)
_GOODBYE_S = 0.5


class Presence:
    """An entry in the registry of workers, kept fresh for as long as the worker lives."""

    def __init__(self, store: Store, registry: Registry, options: WorkerOptions, *, name: str, version: str) -> None:
        """Act for the worker called `name`."""
        self._store = store
        self._name = name
        self._tasks = [declared_task(spec) for spec in registry]
        self._entry = NewWorker(
            id=name,
            host=socket.gethostname(),
            pid=os.getpid(),
            version=version,
            pools=encode({pool.lane: pool.slots for pool in options.pools}),
            tasks=encode(sorted(registry.names)),
            process=current_process(),
        )

    async def keep(self, worker: Worker) -> None:
        """Stay known until cancelled, with how many jobs run and how often the event loop was blocked."""
        while True:
            await asyncio.sleep(_BEAT.total_seconds())
            try:
                if not await self._store.workers.seen(self._name, worker.running, loop_blocks=worker.loop_blocks):
                    await self.enter()
            except StoreError as error:
                log.warning("worker %s could not say that it is alive: %s", self._name, error)

    async def enter(self) -> None:
        """Register, and declare the tasks there is code for; before the first claim, or a breaker's gate is not known."""
        await self._store.tasks.declare(self._tasks)
        await self._store.workers.register(self._entry)

    async def leave(self) -> None:
        """Record that the worker has ended in order; do not wait for a database that does not answer."""
        try:
            async with asyncio.timeout(_GOODBYE_S):
                await self._store.workers.stopped(self._name)
        except (StoreError, TimeoutError) as error:
            log.warning("worker %s could not say goodbye: %s", self._name, str(error) or "the database does not answer")
