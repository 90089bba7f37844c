"""The Django tasks of this process, and the tasks of Windlass that run them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from windlass.client.arguments import Arguments
from windlass.client.options import ScheduleOptions, TaskOptions
from windlass.client.unique import key_rule
from windlass.django.options import options_of
from windlass.django.payload import arguments_of
from windlass.django.running import handler_of

if TYPE_CHECKING:
    from windlass.django.backend import WindlassBackend

declared: dict[str, Any] = {}
"""Every Django task that this process has made for a backend of ours, by its path."""
_RECURRING = frozenset({*ScheduleOptions.__annotations__, "every", "cron", "cadence", "schedule_payload"})


def declare(backend: WindlassBackend, task: Any) -> None:
    """Declare a task to a backend's application; one that is declared already is left as it is."""
    path = task.module_path
    if path in backend.app.tasks:
        return
    options = cast("dict[str, Any]", options_of(task.func))
    if task.backend != backend.alias:
        # Its schedule belongs to the backend that it was declared for: two would run it twice.
        options = {name: value for name, value in options.items() if name not in _RECURRING}
    given = cast("TaskOptions", {"max_attempts": backend.max_attempts, **options, **_rules(task, options)})
    handler = handler_of(backend, task)
    handler.__name__ = handler.__qualname__ = task.func.__name__
    handler.__doc__ = task.func.__doc__
    handler.__module__ = task.func.__module__
    backend.app.add_task(handler, {**given, "name": path, "lane": task.queue_name, "priority": task.priority})


def _rules(task: Any, options: dict[str, Any]) -> dict[str, Any]:
    """Read the options that look at arguments: they name those of the task's own function, which may be given by position."""
    found: dict[str, Any] = {}
    rule = options.get("unique")
    if rule is not None and rule is not False:
        arguments = _arguments(task)
        key = key_rule(rule, arguments)
        if key is not None:
            found["unique"] = lambda **payload: key(arguments.bind(*_given(payload)))
    subject: Callable[..., str | None] | None = options.get("subject")
    if subject is not None:
        named = _arguments(task)
        found["subject"] = lambda **payload: subject(**named.complete(named.bind(*_given(payload))))
    return found


def _arguments(task: Any) -> Arguments:
    return Arguments(task.func, takes_context=task.takes_context)


def _given(payload: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    args, kwargs = arguments_of(payload)
    return tuple(args), kwargs
