"""Keeps the schedules that an application's code declares."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta

from windlass.core.job import NewJob
from windlass.errors import StoreError
from windlass.store import Store
from windlass.worker.worker_log import log

KEPT_FOR = timedelta(hours=24)
_BEAT = timedelta(hours=1)


class Declarations:
    """Enters an application's schedules, confirms them from time to time, and disables what is declared no more."""

    def __init__(self, store: Store, app: str, jobs: Sequence[NewJob]) -> None:
        """Act for the application called `app`, and for others that declare some of the jobs."""
        self._store = store
        self._jobs = jobs
        self._owners = sorted({app, *(job.declared_by for job in jobs if job.declared_by is not None)})

    async def enter(self) -> None:
        """Declare every schedule; raises ScheduleTaken where another application has the name."""
        await self._store.schedules.declare(self._jobs)

    async def keep(self) -> None:
        """Stay declared until cancelled."""
        while True:
            for owner in self._owners:
                try:
                    await self._renew(owner)
                except StoreError as error:
                    log.warning("schedules of application %s could not be kept: %s", owner, error)
            await asyncio.sleep(_BEAT.total_seconds())

    async def _renew(self, owner: str) -> None:
        """Write that an owner's schedules are still declared, and disable those that have not been for a day.

        Their definition is left alone: a newer version of the code may have changed it.
        """
        schedules = self._store.schedules
        jobs = {job.name or "": job for job in self._jobs if job.declared_by == owner}
        known = await schedules.touch_declared(owner, list(jobs))
        await schedules.declare([job for name, job in jobs.items() if name not in known])
        for job in (await schedules.prune_declared(owner, KEPT_FOR)).changed:
            log.warning("schedule %s is no longer declared by application %s and was disabled", job.name, owner)
