"""Gives the tests of django-tasks-db what they import: its backend is Windlass, its rows are jobs, its worker is one of ours."""

from __future__ import annotations

import asyncio
import dataclasses
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import tests
from tests.django.conformance import db_tasks
from tests.django.conformance.backends import Listed
from windlass.core.filter import JobFilter
from windlass.core.page import JobQuery
from windlass.core.pool import EVERY_LANE, PoolSpec
from windlass.django.tasks_api import PACKAGE, task_backends

_PATIENCE_S = 30.0
_OPEN = ("scheduled", "pending", "running")
# What they import beside the backend and the rows: only tests that are left out use it.
_UNUSED = {
    "": ("compat",),
    ".admin": ("DBTaskResultAdmin",),
    ".management.commands.prune_db_task_results": ("logger",),
    ".models": ("get_date_max",),
    ".utils": ("exclusive_transaction", "normalize_uuid"),
}


def _unused(*_: Any) -> Any:
    """Leave a function as it is: one of the names is a decorator."""
    return lambda function: function


@dataclasses.dataclass(frozen=True)
class Rows:
    """The results of a test, or those of one status."""

    status: str | None = None

    def ready(self) -> Rows:
        return Rows("READY")

    def successful(self) -> Rows:
        return Rows("SUCCESSFUL")

    def failed(self) -> Rows:
        return Rows("FAILED")

    def values(self, column: str) -> Rows:
        assert column == "id"
        return self

    @property
    def query(self) -> str:
        return f"select id from windlass_jobs where id > {Listed.cleared_at}"

    def count(self) -> int:
        return sum(self.status in {None, str(result.status)} for result in task_backends["default"].read_results())


class Results:
    """Stands where the model of the other backend is."""

    objects = Rows()


def run_worker(*, queue_name: str = "default", exclude_queues: str = "") -> None:
    """Run a worker of these queues until nothing waits in them."""
    asyncio.run(_work(task_backends["default"].serving_app(), queue_name, frozenset(filter(None, exclude_queues.split(",")))))


async def _work(app: Any, lane: str, left_out: frozenset[str]) -> None:
    pool = PoolSpec(lane, 1, left_out)
    options = dataclasses.replace(app.worker_options(), pools=(pool,))
    async with app, asyncio.timeout(_PATIENCE_S), app.working(options=options):
        query = JobQuery(filter=JobFilter(states=_OPEN, lanes=() if lane == EVERY_LANE else (lane,)))
        while any(job.lane not in left_out for job in (await app.list(query)).jobs):  # noqa: ASYNC110 - the database is asked
            await asyncio.sleep(0.02)


def load(source: Path) -> Any:
    """Load the tests from their file, with our modules under the names of theirs."""
    for name, unused in _UNUSED.items():
        module = sys.modules[f"django_tasks_db{name}"] = ModuleType(f"django_tasks_db{name}")
        for each in unused:
            setattr(module, each, _unused)
    setattr(sys.modules["django_tasks_db"], "DatabaseBackend", Listed)  # noqa: B010 - a module has no such attribute by its type
    setattr(sys.modules["django_tasks_db.models"], "DBTaskResult", Results)  # noqa: B010 - as above
    sys.modules["tests.tasks"] = db_tasks
    setattr(tests, "tasks", db_tasks)  # noqa: B010 - as above
    spec = spec_from_file_location("django_tasks_db_tests", source)
    assert spec is not None
    assert spec.loader is not None
    loaded: Any = module_from_spec(spec)
    spec.loader.exec_module(loaded)
    loaded.LOGGER = PACKAGE
    return loaded
