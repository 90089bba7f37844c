"""Runs a Django task as the handler of a job."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from asgiref.sync import sync_to_async
from django.db import close_old_connections, reset_queries

from windlass.django.payload import arguments_of
from windlass.django.tasks_api import TaskContext, normalize_json, task_started
from windlass.worker.context import JobContext

if TYPE_CHECKING:
    from windlass.django.backend import WindlassBackend


def handler_of(backend: WindlassBackend, task: Any) -> Callable[..., Any]:
    """Make the function that a worker calls: around the task's own it does what Django does around a request."""
    return _coroutine_of(backend, task) if inspect.iscoroutinefunction(task.func) else _function_of(backend, task)


def _function_of(backend: WindlassBackend, task: Any) -> Callable[..., Any]:
    def handle(context: JobContext, /, **payload: Any) -> Any:
        _begin()
        try:
            args, kwargs = _started(backend, task, context, payload)
            return normalize_json(task.func(*args, **kwargs))
        finally:
            close_old_connections()

    return handle


def _coroutine_of(backend: WindlassBackend, task: Any) -> Callable[..., Any]:
    async def handle(context: JobContext, /, **payload: Any) -> Any:
        # Django reaches the database from coroutines in a thread of its own, and so do we.
        await sync_to_async(_begin)()
        try:
            args, kwargs = await sync_to_async(_started)(backend, task, context, payload)
            return normalize_json(await task.func(*args, **kwargs))
        finally:
            await sync_to_async(close_old_connections)()

    return handle


def _begin() -> None:
    reset_queries()
    # One that the database has closed meanwhile would fail the task.
    close_old_connections()


def _started(
    backend: WindlassBackend, task: Any, context: JobContext, payload: Mapping[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    """Announce the run, and return the arguments of the task's function."""
    result = backend.result_of_job(context.job_id, task)
    task_started.send(sender=type(backend), task_result=result)
    args, kwargs = arguments_of(payload)
    return ([TaskContext(task_result=result), *args] if task.takes_context else args), kwargs
