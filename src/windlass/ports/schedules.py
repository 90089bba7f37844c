"""Schedules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, Protocol

from windlass.core.job import Job, NewJob
from windlass.core.schedule_edit import ScheduleEdit
from windlass.core.transitions import Moved


class Schedules(Protocol):
    """Recurring jobs by their name. With a `connection`, a verb belongs to the caller's transaction on it."""

    async def get(self, name: str) -> Job:
        """Read a schedule; raises JobNotFound."""
        ...

    async def define(self, job: NewJob, connection: Any = None) -> Job:
        """Make a schedule, or change the one of this name; raises ScheduleTaken for one that an application declares."""
        ...

    async def create(self, job: NewJob, *, is_enabled: bool = True) -> Job:
        """Make a schedule; raises ScheduleExists where its name is taken."""
        ...

    async def change(self, job_id: int, edit: ScheduleEdit) -> Job:
        """Change a schedule, all or nothing; only another cadence moves its next run. Raises JobNotFound, ScheduleExists."""
        ...

    async def declare(self, jobs: Sequence[NewJob]) -> Sequence[Job]:
        """Define what an application's code declares; an operator's pause survives, another application's names are refused."""
        ...

    async def ensure(self, job: NewJob, connection: Any = None) -> Job:
        """Define a schedule and see that it goes on: enabled at its next time, begun anew if it had failed or was cancelled."""
        ...

    async def enable(self, name: str, connection: Any = None) -> Job:
        """Let a schedule go on at its next time, at once if that has passed."""
        ...

    async def disable(self, name: str, connection: Any = None) -> Job:
        """Stop a schedule, keeping its next time; a running one finishes its run first."""
        ...

    async def sync_enabled(self, name: str, predicate: Callable[[Any], Any], connection: Any = None) -> Job:
        """Lock a schedule, ask `predicate`, and enable or disable it by the answer, all in one transaction."""
        ...

    async def touch_declared(self, app: str, names: Sequence[str]) -> Sequence[str]:
        """Say that an application still declares these; returns them, without any that were let go of meanwhile."""
        ...

    async def prune_declared(self, app: str, older_than: timedelta, keep: Sequence[str] = ()) -> Moved:
        """Disable what an application has not declared for so long, but for names to keep and what its operators paused."""
        ...
