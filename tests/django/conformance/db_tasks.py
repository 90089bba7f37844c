"""The tasks that the tests of django-tasks-db enqueue: their names are given there, and the messages of their exceptions."""

from __future__ import annotations

import sys
from typing import Any

from windlass.django.tasks_api import PACKAGE

if PACKAGE == "django.tasks":
    from django.tasks import task
else:
    from django_tasks import task


@task
def noop_task(*args: Any, **kwargs: Any) -> None: ...


@task
async def noop_task_async(*args: Any, **kwargs: Any) -> None: ...


@task
def failing_task_value_error() -> None:
    raise ValueError("This task failed due to ValueError")


@task
def complex_exception() -> None:
    raise ValueError(ValueError("This task failed"))


@task
def complex_return_value() -> Any:
    return lambda: None


@task
def exit_task() -> None:
    sys.exit(1)


@task(takes_context=True)
def get_task_id(context: Any) -> str:
    return str(context.task_result.id)


@task(takes_context=True)
def test_context(context: Any, attempt: int) -> None:
    assert context.attempt == attempt
