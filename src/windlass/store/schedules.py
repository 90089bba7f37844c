"""Schedules, for asyncio."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial
from random import Random
from typing import Any, TypeVar

from windlass.core.audit import Actor
from windlass.core.job import Job, NewJob
from windlass.core.schedule_edit import ScheduleEdit
from windlass.core.transitions import Moved
from windlass.store.calls import audit, schedule_edits, schedules
from windlass.store.calls.call import Call
from windlass.store.database import Database, run_in

T = TypeVar("T")


class SqlSchedules:
    """Recurring jobs by their name. With a `connection`, a verb belongs to the caller's transaction on it."""

    def __init__(self, database: Database, rng: Random, actor: Actor | None = None) -> None:
        """Speak to `database`; `rng` gives jitter, `actor` is whom the audit log names."""
        self._db = database
        self._rng = rng
        self._actor = actor

    async def _run(self, call: Call[T], connection: Any = None) -> T:
        return await run_in(self._db, call, connection)

    async def get(self, name: str) -> Job:
        """Read a schedule; raises JobNotFound."""
        return await self._run(schedules.get(name))

    async def define(self, job: NewJob, connection: Any = None) -> Job:
        """Make a schedule, or change the one of this name; raises ScheduleTaken for one that an application declares."""
        return await self._run(schedules.define(job, self._rng), connection)

    async def create(self, job: NewJob, *, is_enabled: bool = True) -> Job:
        """Make a schedule; raises ScheduleExists where its name is taken."""
        call = schedule_edits.create(job, self._rng, is_enabled=is_enabled)
        return await self._audited(call, "create schedule")

    async def change(self, job_id: int, edit: ScheduleEdit) -> Job:
        """Change a schedule, all or nothing; only another cadence moves its next run. Raises JobNotFound, ScheduleExists."""
        return await self._audited(schedule_edits.change(job_id, edit, self._rng), "edit schedule")

    async def _audited(self, call: Call[Job], action: str) -> Job:
        return await self._run(audit.audited(call, self._actor, partial(schedule_edits.told_of, action)))

    async def declare(self, jobs: Sequence[NewJob]) -> Sequence[Job]:
        """Define what an application's code declares; an operator's pause survives, another application's names are refused."""
        return [await self._run(schedules.define(job, self._rng)) for job in jobs]

    async def ensure(self, job: NewJob, connection: Any = None) -> Job:
        """Define a schedule and see that it goes on: enabled at its next time, begun anew if it had failed or was cancelled."""
        return await self._run(schedules.ensure(job, self._rng), connection)

    async def enable(self, name: str, connection: Any = None) -> Job:
        """Let a schedule go on at its next time, at once if that has passed."""
        return await self._run(schedules.sync_enabled(name, lambda _: True), connection)

    async def disable(self, name: str, connection: Any = None) -> Job:
        """Stop a schedule, keeping its next time; a running one finishes its run first."""
        return await self._run(schedules.sync_enabled(name, lambda _: False), connection)

    async def sync_enabled(self, name: str, predicate: Callable[[Any], Any], connection: Any = None) -> Job:
        """Lock a schedule, ask `predicate`, and enable or disable it by the answer, all in one transaction.

        The predicate is given the transaction's connection and should look at the database through nothing else.
        """
        return await self._run(schedules.sync_enabled(name, predicate), connection)

    async def touch_declared(self, app: str, names: Sequence[str]) -> Sequence[str]:
        """Say that an application still declares these; returns them, without any that were let go of meanwhile."""
        if not names:
            return []
        return await self._db.run(schedules.touch_declared(app, names))

    async def prune_declared(self, app: str, older_than: timedelta, keep: Sequence[str] = ()) -> Moved:
        """Disable what an application has not declared for so long, but for names to keep and what its operators paused."""
        call = schedules.prune_declared(app, older_than, keep)
        return await self._run(audit.audited(call, self._actor, audit.moved))
