"""Recurring jobs by their name."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from typing import Any

from windlass.core.blocking import twin_of
from windlass.core.filter import JobFilter
from windlass.core.job import Job, NewJob
from windlass.core.page import MAX_PAGE, JobQuery
from windlass.errors import JobNotFound, ScheduleNotFound
from windlass.store.calls import lists, schedule_edits, schedules
from windlass.store.noun import Noun, verb


class Schedules(Noun):
    """Recurring jobs by their name. With a `connection`, a verb belongs to the caller's transaction on it."""

    create, create_sync = verb(schedule_edits.create)
    change, change_sync = verb(schedule_edits.change)
    prune_declared, prune_declared_sync = verb(schedules.prune_declared)

    async def get(self, name: str) -> Job:
        """Read a schedule; raises ScheduleNotFound, a JobNotFound, with the nearest name."""
        try:
            return await self._run(schedules.get(name))
        except JobNotFound:
            raise ScheduleNotFound(name, await self._names()) from None

    get_sync = twin_of(get)

    async def _names(self) -> list[str]:
        """List the names of the newest recurring jobs."""
        page = await self._run(lists.list_jobs(JobQuery(filter=JobFilter(is_recurring=True), limit=MAX_PAGE)))
        return [job.name for job in page.jobs if job.name is not None]

    async def define(self, job: NewJob, connection: Any = None) -> Job:
        """Make a schedule, or change the one of this name; raises ScheduleTaken for one that an application declares."""
        return await self._run(schedules.define(job), connection)

    async def declare(self, jobs: Sequence[NewJob]) -> Sequence[Job]:
        """Define what an application's code declares; an operator's pause survives, another application's names are refused."""
        return [await self._run(schedules.define(job)) for job in jobs]

    async def ensure(self, job: NewJob, connection: Any = None) -> Job:
        """Define a schedule and see that it goes on: enabled at its next time, begun anew if it had failed or was cancelled."""
        return await self._run(schedules.ensure(job), connection)

    async def enable(self, name: str, connection: Any = None) -> Job:
        """Let a schedule go on at its next time, at once if that has passed."""
        return await self._run(schedules.sync_enabled(name, lambda _: True), connection)

    enable_sync = twin_of(enable)

    async def disable(self, name: str, connection: Any = None) -> Job:
        """Stop a schedule, keeping its next time; a running one finishes its run first."""
        return await self._run(schedules.sync_enabled(name, lambda _: False), connection)

    disable_sync = twin_of(disable)

    async def sync_enabled(self, name: str, predicate: Callable[[Any], Any], connection: Any = None) -> Job:
        """Lock a schedule, ask `predicate`, and enable or disable it by the answer, all in one transaction.

        The predicate is given the transaction's connection and should look at the database through nothing else.
        """
        return await self._run(schedules.sync_enabled(name, predicate), connection)

    async def touch_declared(self, app: str, names: Sequence[str]) -> builtins.list[str]:
        """Record that an application still declares these; returns them, without any that were disabled meanwhile."""
        return await self._run(schedules.touch_declared(app, names)) if names else []
