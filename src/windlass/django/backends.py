"""The backends of the settings that are Windlass."""

from __future__ import annotations

from importlib import import_module

import django
from django.apps import apps
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.utils.module_loading import autodiscover_modules

from windlass.app import Windlass
from windlass.django.backend import WindlassBackend
from windlass.django.tasks_api import task_backends


def backends() -> list[WindlassBackend]:
    """Return the backends of TASKS that are Windlass, in their order there."""
    found = (task_backends[alias] for alias in task_backends)
    return [backend for backend in found if isinstance(backend, WindlassBackend)]


def backend_called(alias: str | None = None) -> WindlassBackend:
    """Return the backend of a name, or without one the first; raises ImproperlyConfigured if it is not Windlass."""
    found = {backend.alias: backend for backend in backends()}
    if not found:
        raise ImproperlyConfigured(
            'no backend in TASKS is Windlass; add {"default": {"BACKEND": "windlass.django.WindlassBackend"}}'
        )
    if alias is None:
        return next(iter(found.values()))
    if alias not in found:
        raise ImproperlyConfigured(f"TASKS[{alias!r}] is not Windlass; {', '.join(found)} is")
    return found[alias]


def loaded_app(alias: str | None = None) -> Windlass:
    """Return a backend's application for a worker, with every task that the project has.

    They are found in the `tasks` modules of the installed applications, in what the URLs import, and in OPTIONS['modules'].
    """
    if not apps.ready:
        django.setup()
    backend = backend_called(alias)
    autodiscover_modules("tasks")
    for module in (*backend.modules, *filter(None, [getattr(settings, "ROOT_URLCONF", None)])):
        import_module(module)
    return backend.serving_app()
