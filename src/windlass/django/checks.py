"""What `manage.py check` finds wrong with a backend."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from django.apps import apps
from django.core.checks import Error
from django.core.exceptions import ImproperlyConfigured
from django.db import connections

from windlass.core.pool import PULL_LANE
from windlass.django import database
from windlass.django.declaring import declare, declared
from windlass.django.options import options_of
from windlass.errors import ConfigError, InvalidInput
from windlass.store.sqlite_library import VARIABLE, sqlite_driver

if TYPE_CHECKING:
    from windlass.django.backend import WindlassBackend


def check_backend(backend: WindlassBackend) -> Iterator[Any]:
    """Find what would fail later: at the first enqueue, in the worker, or on the dashboard."""
    where = f"TASKS[{backend.alias!r}]"
    if not apps.is_installed("windlass.django"):
        yield Error(
            f"{where} uses Windlass, whose application is not installed",
            hint="Add 'windlass.django' to INSTALLED_APPS: it brings the tables and the commands.",
            id="windlass.E001",
        )
    yield from _check_database(backend, where)
    if PULL_LANE in backend.queues:
        yield Error(
            f"{where}['QUEUES'] has {PULL_LANE!r}, which is the lane of workers over HTTP: `windlass_worker` leaves it to them",
            hint="Call the queue otherwise.",
            id="windlass.E005",
        )
    try:
        backend.app.settings  # noqa: B018 - reading them checks them
        for task in list(declared.values()):
            _check_task(backend, task)
    except (ConfigError, ImproperlyConfigured, InvalidInput) as error:
        yield Error(str(error), hint="See docs/django.md.", id="windlass.E006")


def _check_database(backend: WindlassBackend, where: str) -> Iterator[Any]:
    if backend.database not in connections:
        yield Error(
            f"{where}['OPTIONS']['database'] is {backend.database!r}, which DATABASES does not have",
            hint=f"It has {', '.join(sorted(connections))}.",
            id="windlass.E002",
        )
        return
    try:
        dialect = database.dialect_of(backend.database)
    except ImproperlyConfigured as error:
        yield Error(str(error), hint="Name another database in OPTIONS['database'].", id="windlass.E003")
        return
    if dialect == "postgres" and find_spec("psycopg") is None:
        yield Error(
            f"{where}: Windlass enqueues through psycopg 3, which is not installed",
            hint="pip install 'windlass[django,postgres]'; Django uses it by itself.",
            id="windlass.E004",
        )
    theirs = connections[backend.database].Database
    if dialect == "sqlite" and theirs.Connection is not sqlite_driver.Connection:
        yield Error(
            f"Windlass uses {sqlite_driver.__name__} and Django {theirs.__name__}; two SQLite libraries can corrupt a file",
            hint=f"Leave {VARIABLE} out of the environment, and import nothing of Windlass before the settings.",
            id="windlass.E007",
        )


def _check_task(backend: WindlassBackend, task: Any) -> None:
    try:
        options_of(task.func)
        declare(backend, task)
    except InvalidInput as error:
        raise ImproperlyConfigured(f"{task.module_path}: {error}") from error
