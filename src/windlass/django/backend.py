"""The Tasks backend: enqueues in Django's own transaction, and finds results."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import cached_property
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.db import DEFAULT_DB_ALIAS
from django.utils import timezone
from django.utils.module_loading import import_string

from windlass.app import Windlass
from windlass.client.operations import Operator
from windlass.client.options import UsingOptions
from windlass.config import check_settings
from windlass.core.ids import parse_job_id
from windlass.core.job import Job, WaitReason
from windlass.django import database
from windlass.django.client import client_of
from windlass.django.declaring import declare, declared
from windlass.django.finished import announce_ends
from windlass.django.payload import payload_of
from windlass.django.results import result_of
from windlass.django.tasks_api import BaseTaskBackend, Task, TaskResultDoesNotExist, task_enqueued
from windlass.errors import ConfigError, JobNotFound, SchemaError

_lock = threading.RLock()
_apps: dict[str, Windlass] = {}
_OWN_OPTIONS = frozenset({"database", "max_attempts", "modules"})


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class WindlassTask(Task):
    """A task whose next jobs may have options of their own."""

    job_options: Mapping[str, Any] = dataclasses.field(default_factory=dict, hash=False)
    """Options that Windlass has beyond Django's, as they were given to `using`."""

    def using(
        self,
        *,
        priority: int | None = None,
        queue_name: str | None = None,
        run_after: datetime | None = None,
        backend: str | None = None,
        **options: Any,
    ) -> WindlassTask:
        """Return the task with other options for its next jobs: Django's, or those that an enqueue of Windlass has."""
        given = {"priority": priority, "queue_name": queue_name, "run_after": run_after, "backend": backend}
        changes = {name: value for name, value in given.items() if value is not None}
        return dataclasses.replace(self, **changes, job_options={**self.job_options, **options})


class WindlassBackend(BaseTaskBackend):
    """Keeps the tasks of a project as jobs in one of its databases."""

    task_class = WindlassTask
    supports_defer = True
    supports_async_task = True
    supports_get_result = True
    supports_priority = True

    def __init__(self, alias: str, params: dict[str, Any]) -> None:
        """Take OPTIONS: `database`, `max_attempts`, `modules`, and every setting of Windlass under its own name."""
        super().__init__(alias, params)
        self.database: str = self.options.get("database", DEFAULT_DB_ALIAS)
        """The name of its database in DATABASES."""
        self.max_attempts: int = self.options.get("max_attempts", 1)
        """How many tries a task has that sets no number itself; Django's own backends have one."""
        self.modules: Sequence[str] = self.options.get("modules", ())
        """Where tasks are, beside the `tasks` modules of the installed applications."""

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of Windlass among the options."""
        return {name: value for name, value in self.options.items() if name not in _OWN_OPTIONS}

    @cached_property
    def app(self) -> Windlass:
        """The application of Windlass that has these tasks, one for all threads."""
        key = f"{self.alias} {sorted(self.queues)} {self.options}"
        # Django makes a backend for each thread that asks for one.
        with _lock:
            if key not in _apps:
                _apps[key] = self._new_app()
            return _apps[key]

    def _new_app(self) -> Windlass:
        try:
            check_settings(self.settings, f"TASKS[{self.alias!r}]['OPTIONS']: ")
            app = Windlass(name=self.alias, **self.settings)
        except ConfigError as error:
            raise ImproperlyConfigured(str(error)) from error
        announce_ends(self, app)
        return app

    @cached_property
    def client(self) -> Operator:
        """Every verb of Windlass over Django's own connections; use the `_sync` ones."""
        return client_of(self.app, self.database)

    def serving_app(self) -> Windlass:
        """Return the application with every task of the project and its own connections: for workers and pages."""
        app = self.app
        with _lock:
            for task in list(declared.values()):
                declare(self, task)
            url = database.url_of(self.database)
            if app.settings.database_url != url:
                app.configure(database_url=url)
        return app

    def validate_task(self, task: Any) -> None:
        """Raise InvalidTask for one that cannot run here; every task is seen by this when it is made."""
        super().validate_task(task)
        declared.setdefault(task.module_path, task)

    def enqueue(self, task: Any, args: Iterable[Any], kwargs: Mapping[str, Any]) -> Any:
        """Enqueue a job in the transaction that is open on Django's connection."""
        self.validate_task(task)
        payload = payload_of(list(args), kwargs)
        with _lock:
            declare(self, declared[task.module_path])
        of_windlass = self.app.tasks[task.module_path].using(**self._job_options(task))
        with _remedied():
            stored = self.client.enqueue_and_get_sync(of_windlass.job_of_payload(payload))
        # Of a job that was there already, Django sees that one.
        result = result_of(task, stored.job, [], backend=self.alias)
        task_enqueued.send(type(self), task_result=result)
        return result

    def _job_options(self, task: Any) -> UsingOptions:
        options: dict[str, Any] = {"lane": task.queue_name, "priority": task.priority}
        if task.run_after is not None:
            # Without USE_TZ a project's times are those of its time zone.
            options["run_at"] = task.run_after if timezone.is_aware(task.run_after) else timezone.make_aware(task.run_after)
        found: UsingOptions = {**options, **getattr(task, "job_options", {})}  # type: ignore[typeddict-item]  # checked by `using`
        return found

    def get_result(self, result_id: str) -> Any:
        """Read a result; raises TaskResultDoesNotExist."""
        number = _number_of(result_id)
        if number is None:
            raise TaskResultDoesNotExist(result_id)
        try:
            return self.result_of_job(number)
        except JobNotFound as error:
            raise TaskResultDoesNotExist(result_id) from error

    def result_of_job(self, number: int, task: Any = None) -> Any:
        """Read a job as a result; raises JobNotFound, and TaskResultDoesNotExist for a job that is of no Django task."""
        with _remedied():
            job = self.client.get_sync(number)
            runs = self.client.executions_sync(number) if job.executions else ()
        return result_of(self._task_of(job, task), job, runs, backend=self.alias)

    def _task_of(self, job: Job, task: Any) -> Any:
        found = task or declared.get(job.task) or _imported(job.task)
        if found is None:
            raise TaskResultDoesNotExist(f"job {job.id} is of {job.task!r}, which is no Django task of this project")
        wanted = {"priority": job.base_priority, "queue_name": job.lane, "backend": self.alias}
        if job.wait_reason is WaitReason.DELAY:
            wanted["run_after"] = job.run_at
        changed = {name: value for name, value in wanted.items() if getattr(found, name) != value}
        return dataclasses.replace(found, **changed) if changed else found

    def check(self, **kwargs: Any) -> Iterable[Any]:
        """Find what is wrong with the settings."""
        from windlass.django.checks import check_backend  # noqa: PLC0415 - only where it is checked

        return [*super().check(**kwargs), *check_backend(self)]


def _imported(path: str) -> Any:
    try:
        found = import_string(path)
    except ImportError:
        return None
    return found if isinstance(found, Task) else None


def _number_of(result_id: object) -> int | None:
    """Read the id of a result; numbers of jobs are none, so that a guess finds nothing."""
    text = str(result_id)
    return parse_job_id(text) if "-" in text else None


@contextmanager
def _remedied() -> Iterator[None]:
    """Name the command of a Django project where the tables are missing."""
    try:
        yield
    except SchemaError as error:
        raise SchemaError(f"{str(error).partition('; run')[0]}; run `python manage.py windlass_migrate`") from error
