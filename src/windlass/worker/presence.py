"""Registers a worker: its tasks, its pools, and heartbeats."""

from __future__ import annotations

import asyncio
import os
import socket
from contextlib import suppress
from datetime import timedelta

from windlass.core.known_task import declared_task
from windlass.core.payload import encode
from windlass.core.task import Registry
from windlass.core.topic import Topic
from windlass.core.worker import NewWorker
from windlass.errors import StoreError
from windlass.process import current_process
from windlass.store import Store
from windlass.worker.process_usage import ProcessUsage
from windlass.worker.program import WorkerOptions
from windlass.worker.worker import Worker
from windlass.worker.worker_log import log

_BEAT = timedelta(seconds=10)
_SHORTEST_S = 1.0
"""Between two heartbeats: many cancels wake a worker many times."""
_GOODBYE_S = 0.5


class Presence:
    """An entry in the registry of workers, kept fresh for as long as the worker lives."""

    def __init__(
        self, store: Store, registry: Registry, options: WorkerOptions, *, name: str, version: str, app_version: str | None = None
    ) -> None:
        """Act for the worker called `name`."""
        self._store = store
        self._name = name
        self._wake = asyncio.Event()
        self._usage = ProcessUsage()
        self._tasks = [declared_task(spec) for spec in registry]
        self._entry = NewWorker(
            id=name,
            host=socket.gethostname(),
            pid=os.getpid(),
            version=version,
            app_version=app_version,
            pools=encode({pool.lane: pool.slots for pool in options.pools}),
            tasks=encode(sorted(registry.names)),
            process=current_process(),
        )

    def wake(self, topic: Topic) -> None:
        """Ask now what is wanted of the worker: an operator may have paused it."""
        if topic is Topic.CONTROL:
            self._wake.set()

    async def keep(self, worker: Worker) -> None:
        """Send heartbeats until cancelled, with how much runs, and do what operators ask of the worker as a whole."""
        while True:
            await self._pause()
            try:
                await self._beat(worker)
            except StoreError as error:
                log.warning("worker %s could not send its heartbeat: %s", self._name, error)

    async def _pause(self) -> None:
        await asyncio.sleep(_SHORTEST_S)
        with suppress(TimeoutError):
            async with asyncio.timeout(_BEAT.total_seconds() - _SHORTEST_S):
                await self._wake.wait()
        self._wake.clear()

    async def _beat(self, worker: Worker) -> None:
        use = self._usage.read()
        seen = await self._store.workers.seen(
            self._name, worker.running, loop_blocks=worker.loop_blocks, cpu_percent=use.cpu_percent, memory_mb=use.memory_mb
        )
        if seen is None:
            await self.enter()
        if seen is not None and seen.is_paused:
            worker.pause_claims()
        else:
            worker.resume_claims()

    async def enter(self) -> None:
        """Register, and declare the tasks there is code for; before the first claim, which a breaker may gate."""
        await self._store.tasks.declare(self._tasks)
        await self._store.workers.register(self._entry)

    async def leave(self) -> None:
        """Record that the worker has ended in order; do not wait for a database that does not answer."""
        try:
            async with asyncio.timeout(_GOODBYE_S):
                await self._store.workers.stopped(self._name)
        except (StoreError, TimeoutError) as error:
            log.warning("worker %s could not record its stop: %s", self._name, str(error) or "the database does not answer")
