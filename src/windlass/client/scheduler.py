"""Schedules for applications: made, ensured and switched by name, for asyncio and for blocking code."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Unpack

from windlass.client.client import DatabaseClient
from windlass.client.options import Cadenced, RecurringOptions
from windlass.client.rules import RULE_OPTIONS, rule_of
from windlass.core.blocking import twin_of
from windlass.core.cadence import ByHandler, Recurrence
from windlass.core.job import Job, NewJob


class Scheduler(DatabaseClient):
    """A client with the verbs of schedules."""

    async def recurring(
        self,
        name: str,
        task: Any,
        cadence: Cadenced | Recurrence,
        payload: Mapping[str, Any] | None = None,
        **options: Unpack[RecurringOptions],
    ) -> Job:
        """Make a schedule of a task (or of its name), or change the one called `name`; only a new cadence moves its next run."""
        connection = options.pop("connection", None)
        job = await self._described(task, payload, options)
        schedule = scheduled(job, name, rule_of(cadence, _of_rule(options)), options)
        return await (await self.store()).schedules.define(schedule, await self.driver(connection))

    recurring_sync = twin_of(recurring)

    async def ensure(
        self,
        name: str,
        task: Any,
        payload: Mapping[str, Any] | None = None,
        *,
        cadence: Cadenced | Recurrence | None = None,
        **options: Unpack[RecurringOptions],
    ) -> Job:
        """See that a schedule is there and goes on: enabled, with its next time kept; a failed or cancelled one begins anew.

        Without a cadence its handler chooses each next run, and the first is now.
        """
        connection = options.pop("connection", None)
        rule = rule_of(ByHandler() if cadence is None else cadence, _of_rule(options))
        schedule = scheduled(await self._described(task, payload, options), name, rule, options)
        return await (await self.store()).schedules.ensure(schedule, await self.driver(connection))

    ensure_sync = twin_of(ensure)

    async def sync_enabled(self, name: str, predicate: Callable[[Any], Any], connection: Any = None) -> Job:
        """Lock a schedule, ask `predicate` of the transaction's connection, and enable or disable the schedule by the answer.

        In the caller's transaction if a connection is given. The predicate is asked after the lock, so of two callers the later
        one decides by what the earlier one has committed.
        """
        return await (await self.store()).schedules.sync_enabled(name, predicate, await self.driver(connection))

    sync_enabled_sync = twin_of(sync_enabled)

    async def _described(self, task: Any, payload: Mapping[str, Any] | None, options: Mapping[str, Any]) -> NewJob:
        own = {key: value for key, value in options.items() if key not in RULE_OPTIONS}
        return await self.described(task if isinstance(task, str) else task.name, payload or {}, own)


def _of_rule(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if name in RULE_OPTIONS}


def scheduled(job: NewJob, name: str, rule: Recurrence, options: Mapping[str, Any], *, declared_by: str | None = None) -> NewJob:
    """Make a schedule of a job."""
    spawn = bool(options.get("spawn"))
    # What makes one-shot jobs of the task unique is the children's: the schedule has its name.
    child_key = options.get("child_key") or (job.unique_key if spawn else None)
    unique_key = options.get("unique_key") if not spawn else None
    return replace(
        job, name=name, recurrence=rule, spawn=spawn, child_key=child_key, unique_key=unique_key, declared_by=declared_by
    )
