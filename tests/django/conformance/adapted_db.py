"""The tests of django-tasks-db, with Windlass in place of its backend.

Those that apply to any backend are named. The others are about its model and table, its commands with their options and
prints, its id function or its admin. Three come near: two ask for ids that are random UUIDs, where ours have the job's number
in them, and one for the sentence of `json` about a result that is not JSON, where ours is Django's. How many statements a step
needs is left open.
"""

from __future__ import annotations

import os
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from django.test import override_settings

from tests.django.conformance.db_stand_in import load, run_worker
from windlass.django.tasks_api import PACKAGE, task_backends

APPLY = {
    "DatabaseBackendTestCase": {
        "test_get_result",
        "test_get_result_async",
        "test_get_missing_result",
        "test_async_get_missing_result",
        "test_invalid_uuid",
        "test_async_invalid_uuid",
        "test_check",
        "test_enqueue_logs",
        "test_doesnt_wait_until_transaction_commit",
        "test_validate_on_enqueue",
        "test_validate_on_aenqueue",
    },
    "DatabaseBackendWorkerTestCase": {
        "test_run_enqueued_task",
        "test_batch_processes_all_tasks",
        "test_no_tasks",
        "test_doesnt_process_different_queue",
        "test_process_all_queues",
        "test_process_all_queues_excluding_one_queue",
        "test_excluding_unknown_queue_processes_selected_queues",
        "test_failing_task",
        "test_complex_exception",
        "test_worker_doesnt_exit_on_failure",
        "test_takes_context",
        "test_context",
    },
}
if PACKAGE != "django.tasks":
    # What the framework, not a backend, does since it is Django's own.
    APPLY["DatabaseBackendTestCase"] -= {"test_enqueue_logs"}
_theirs = load(Path(os.environ["CONFORMANCE_DB_TESTS"]))


def adapt(name: str) -> type:
    """Make a test case of theirs that runs on Windlass, with the tests that apply."""
    case: Any = getattr(_theirs, name)

    def set_up(_self: Any) -> None:
        task_backends["default"].clear()

    body: dict[str, Any] = {each: None for each in dir(case) if each.startswith("test_") and each not in APPLY[name]}
    body |= {"databases": {"default"}, "__module__": __name__, "setUp": set_up, "run_worker": staticmethod(run_worker)}
    body["assertNumQueries"] = lambda _self, _number: nullcontext()
    tasks = {"default": {"BACKEND": "django_tasks_db.DatabaseBackend", "QUEUES": ["default", "queue-1"]}}
    adapted: type = override_settings(TASKS=tasks)(type(name, (case,), body))
    missing = APPLY[name] - set(dir(case))
    assert not missing, f"django-tasks-db no longer has {missing}"
    return adapted


DatabaseBackendTestCase = adapt("DatabaseBackendTestCase")
DatabaseBackendWorkerTestCase = adapt("DatabaseBackendWorkerTestCase")
