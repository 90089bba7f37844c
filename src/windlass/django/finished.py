"""Sends Django's signal for tasks that have ended."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from django.db import close_old_connections

from windlass.app import Windlass
from windlass.core.hooks import EndEvent
from windlass.core.job import JobState
from windlass.django.tasks_api import TaskResultStatus, task_finished

if TYPE_CHECKING:
    from windlass.django.backend import WindlassBackend


def announce_ends(backend: WindlassBackend, app: Windlass) -> None:
    """Send `task_finished` from the worker once the end is written; a run that is tried again is no end."""

    async def announce(event: EndEvent) -> None:
        if event.task in app.tasks and (event.error is None or event.state is JobState.FAILED):
            await asyncio.to_thread(_announce, backend, event)

    app.on("finish")(announce)
    app.on("fail")(announce)


def _announce(backend: WindlassBackend, event: EndEvent) -> None:
    close_old_connections()
    try:
        result = backend.result_of_job(event.job_id)
        if event.error is None and not result.is_finished:
            # A schedule waits for its next time already; this is about the run that has ended.
            object.__setattr__(result, "status", TaskResultStatus.SUCCESSFUL)
        if event.exception is None:
            task_finished.send(sender=type(backend), task_result=result)
            return
        try:
            raise event.exception  # noqa: TRY301 - no other place raises it again
        except BaseException:  # noqa: BLE001 - Django's own receiver logs the exception that is being handled
            task_finished.send(sender=type(backend), task_result=result)
    finally:
        close_old_connections()
