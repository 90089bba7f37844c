"""The tests that Django and django-tasks-db have of their backends, run on Windlass: none of their code is kept here."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import django
import pytest

from tests.django.django6 import VARIABLE, django_tasks_db_tests, django_tests, environment_with_django6, newer_python
from tests.django.test_project import environment, postgres_settings, run_tests, sqlite_settings
from tests.support.postgres_server import PostgresServer

ROOT = Path(__file__).parents[2]
SETTINGS = "tests.django.conformance.settings"
IN_CORE = 47 + 23
"""How many apply where the framework is Django's own: of Django's 56 of its dummy backend and tasks, of django-tasks-db's 95."""
IN_BACKPORT = 41 + 22
"""How many apply to the package `django-tasks`, which lacks what Django has added since."""


def conform(database: dict[str, Any], python: str, count: int) -> None:
    """Run them; `adapted.py` and `adapted_db.py` name what applies and why the rest does not."""
    source, of_db = django_tests(), django_tasks_db_tests()
    if source is None or of_db is None:
        pytest.skip("THE SOURCES OF DJANGO AND DJANGO-TASKS-DB COULD NOT BE DOWNLOADED: THEIR TESTS DID NOT RUN")
    path = os.pathsep.join(map(str, (ROOT, source)))
    files = {"CONFORMANCE_DATABASE": json.dumps(database), "CONFORMANCE_DB_TESTS": str(of_db)}
    modules = [f"tests.django.conformance.{name}" for name in ("adapted", "adapted_db")]
    done = subprocess.run(
        [python, "-m", "django", "test", "--noinput", *modules],
        env=environment(DJANGO_SETTINGS_MODULE=SETTINGS, PYTHONPATH=path, **files),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.findall(r"^Ran (\d+) tests", done.stderr, re.MULTILINE) == [str(count)], done.stderr


def sqlite_file(folder: Path) -> dict[str, Any]:
    return {**sqlite_settings(folder / "project.sqlite3"), "TEST": {"NAME": str(folder / "test.sqlite3")}}


def django6() -> str:
    found = newer_python()
    if found is None:
        pytest.skip(f"NO PYTHON 3.12 OR LATER WAS FOUND, SO DJANGO 6 WAS NOT TESTED; name one in {VARIABLE}")
    return str(environment_with_django6(found))


def test_the_tests_of_other_backends_pass(tmp_path: Path) -> None:
    conform(sqlite_file(tmp_path), sys.executable, IN_BACKPORT if django.VERSION < (6,) else IN_CORE)


def test_the_tests_of_other_backends_pass_on_postgres(postgres_server: PostgresServer, postgres_dsn: str) -> None:
    del postgres_server
    conform(postgres_settings(postgres_dsn), sys.executable, IN_BACKPORT if django.VERSION < (6,) else IN_CORE)


def test_the_tests_of_other_backends_pass_on_django_6(tmp_path: Path) -> None:
    conform(sqlite_file(tmp_path), django6(), IN_CORE)


def test_a_project_on_django_6_works(tmp_path: Path) -> None:
    run_tests(sqlite_file(tmp_path), python=django6())
