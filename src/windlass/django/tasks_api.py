"""The Tasks framework: Django's own, or on older versions the package `django-tasks`, which has the same names."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from django import get_version
from django.core.exceptions import ImproperlyConfigured

PACKAGE = "django.tasks" if find_spec("django.tasks") else "django_tasks"
if find_spec(PACKAGE) is None:
    raise ImproperlyConfigured(f"Django {get_version()} has no Tasks framework of its own: pip install django-tasks")
_framework: Any = import_module(PACKAGE)
_records: Any = import_module(f"{PACKAGE}.base")
_exceptions: Any = import_module(f"{PACKAGE}.exceptions")
_signals: Any = import_module(f"{PACKAGE}.signals")

BaseTaskBackend: Any = import_module(f"{PACKAGE}.backends.base").BaseTaskBackend
Task: Any = _records.Task
TaskContext: Any = _records.TaskContext
TaskError: Any = _records.TaskError
TaskResult: Any = _records.TaskResult
TaskResultStatus: Any = _records.TaskResultStatus
InvalidTask: Any = getattr(_exceptions, "InvalidTask", None) or _exceptions.InvalidTaskError
TaskResultDoesNotExist: Any = _exceptions.TaskResultDoesNotExist
normalize_json: Any = import_module("django.utils.json" if PACKAGE == "django.tasks" else "django_tasks.utils").normalize_json
task_backends: Any = _framework.task_backends
task_enqueued: Any = _signals.task_enqueued
task_finished: Any = _signals.task_finished
task_started: Any = _signals.task_started


def import_checks() -> None:
    """Register the checks of TASKS: the package does so only for a project that has it in INSTALLED_APPS too."""
    import_module(f"{PACKAGE}.checks")
