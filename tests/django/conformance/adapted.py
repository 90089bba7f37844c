"""Django's tests of its own backends, with Windlass in their place.

A test is left out by its name where it is about the other backend itself; each has its reason.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from django.test import override_settings

from windlass.django.tasks_api import PACKAGE

HERE = "tests.django.conformance.backends"
LISTED = {"BACKEND": f"{HERE}.Listed"}
IS_THE_OTHER_BACKEND = "asserts the class of the other backend"
RUNS_AT_ONCE = "needs a backend that runs a task inside `enqueue`"
IS_NEWER = "asserts what the framework, not a backend, does since it is Django's own"
LEFT_OUT = {
    "DummyBackendTestCase.test_using_correct_backend": IS_THE_OTHER_BACKEND,
    "TaskTestCase.test_using_correct_backend": IS_THE_OTHER_BACKEND,
    "TaskTestCase.test_get_backend": IS_THE_OTHER_BACKEND,
    "DummyBackendTestCase.test_refresh_result": "sets the result in the dummy's list; here it is a row",
    "DummyBackendTestCase.test_refresh_result_async": "sets the result in the dummy's list; here it is a row",
    "TaskTestCase.test_refresh_result": "sets the result in the dummy's list; here it is a row",
    "TaskTestCase.test_task_error_invalid_exception": RUNS_AT_ONCE,
    "TaskTestCase.test_task_error_unknown_module": RUNS_AT_ONCE,
    "DummyBackendTestCase.test_validate_disallowed_async_task": "switches a mark of the dummy's class off",
}


if PACKAGE != "django.tasks":
    LEFT_OUT |= {
        "DummyBackendTestCase.test_enqueue_logs": IS_NEWER,
        "TaskTestCase.test_pickle_task": IS_NEWER,
        "TaskTestCase.test_pickle_task_result": IS_NEWER,
        "TaskTestCase.test_run_after_in_decorator": IS_NEWER,
        "TaskTestCase.test_unpickle_arbitrary_string": IS_NEWER,
        "TaskTestCase.test_unpickle_non_task_object": IS_NEWER,
    }


def adapt(module: str, name: str, tasks: dict[str, Any]) -> type:
    """Make a test case of Django's that runs on these TASKS."""
    theirs: Any = getattr(import_module(f"tasks.{module}"), name)
    body: dict[str, Any] = {"databases": {"default"}, "__module__": __name__}
    body |= {each: None for each in dir(theirs) if f"{name}.{each}" in LEFT_OUT}
    adapted: type = override_settings(TASKS=tasks)(type(name, (theirs,), body))
    return adapted


DummyBackendTestCase = adapt("test_dummy_backend", "DummyBackendTestCase", {"default": {**LISTED, "QUEUES": []}})
DummyBackendTransactionTestCase = adapt("test_dummy_backend", "DummyBackendTransactionTestCase", {"default": LISTED})
TaskTestCase = adapt(
    "test_tasks",
    "TaskTestCase",
    {
        "default": {**LISTED, "QUEUES": ["default", "queue_1"]},
        "immediate": {**LISTED, "QUEUES": []},
        "missing": {"BACKEND": "does.not.exist"},
    },
)
