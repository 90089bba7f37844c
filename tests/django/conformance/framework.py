"""Gives Django's tests of its Tasks framework what they import, also where the framework is the package `django-tasks`."""

from __future__ import annotations

import sys
from importlib import import_module

from windlass.django.tasks_api import PACKAGE

_MODULES = ("", ".base", ".exceptions", ".signals", ".backends", ".backends.base", ".backends.dummy", ".backends.immediate")
_RENAMED = {"InvalidTask": "InvalidTaskError", "InvalidTaskBackend": "InvalidTaskBackendError"}


def stand_in() -> None:
    """Let `django.tasks` be `django_tasks`, under the names that became shorter on the way."""
    if PACKAGE == "django.tasks":
        return
    for module in _MODULES:
        sys.modules[f"django.tasks{module}"] = import_module(f"{PACKAGE}{module}")
    exceptions = sys.modules["django.tasks.exceptions"]
    for name, before in _RENAMED.items():
        if not hasattr(exceptions, name):
            setattr(exceptions, name, getattr(exceptions, before))
