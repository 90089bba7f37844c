from __future__ import annotations

from typing import Any

from django.contrib.auth.models import User
from django.core.exceptions import ValidationError

from windlass.django import task_options
from windlass.django.tasks_api import PACKAGE

if PACKAGE == "django.tasks":
    from django.tasks import task
else:
    from django_tasks import task


@task
def add(one: int, two: int = 0) -> int:
    return one + two


@task
def anything(*args: Any, **kwargs: Any) -> list[Any]:
    return [args, kwargs]


@task(queue_name="mail", priority=7)
async def count_users(least: int) -> bool:
    return bool(await User.objects.acount() >= least)


@task(takes_context=True)
@task_options(max_attempts=2, retry={"base": "10ms", "jitter": 0})
def fail_once(context: Any, word: str) -> str:
    if context.attempt == 1:
        raise LookupError(word)
    return f"{word} {context.attempt} {len(context.task_result.errors)}"


@task
def fail() -> None:
    raise ValidationError("nobody")


@task
def leave() -> None:
    raise SystemExit("goodbye")


@task
@task_options(unique=["one"])
def add_once(one: int, two: int = 0) -> int:
    return one + two


@task
def sign_up(name: str) -> None:
    User.objects.create(username=name)
    add.enqueue(1)
