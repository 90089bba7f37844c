"""Options of Windlass for a task, beyond those of Django's `@task`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, Unpack, cast

from windlass.client.options import TASK_OPTIONS, TaskOptions, check_names
from windlass.errors import InvalidInput

F = TypeVar("F", bound=Callable[..., Any])
_ATTRIBUTE = "windlass_options"
_DJANGOS = {
    "lane": "@task(queue_name=…)",
    "name": "the function's own path",
    "payload": "the function's own arguments",
    "priority": "@task(priority=…)",
}


def task_options(**options: Unpack[TaskOptions]) -> Callable[[F], F]:
    """Give a task's function options of Windlass; write it below `@task`. Other backends leave them alone.

    `max_attempts`, `retry`, `timeout`, `isolation`, `unique`, `every`, `cron` and all others that a task of Windlass has.
    Raises InvalidInput for one that there is not, and for those that Django's `@task` has itself.
    """
    check_names(options, TASK_OPTIONS)
    for name, instead in _DJANGOS.items():
        if name in options:
            raise InvalidInput(name, dict(options)[name], f"is what Django calls otherwise; use {instead}")

    def mark(function: F) -> F:
        if hasattr(function, "enqueue"):
            raise InvalidInput("task_options", function, "goes on the function itself: write it below @task")
        setattr(function, _ATTRIBUTE, options)
        return function

    return mark


def options_of(function: Callable[..., Any]) -> TaskOptions:
    """Return the options that a function was given."""
    return cast("TaskOptions", getattr(function, _ATTRIBUTE, {}))
