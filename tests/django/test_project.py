"""A Django project's own test run, on each database it may have."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from tests.support.postgres_server import PostgresServer

HERE = Path(__file__).parent


def postgres_settings(dsn: str) -> dict[str, Any]:
    """Write a DSN as Django's settings do."""
    parts = urlsplit(dsn)
    found = {"NAME": parts.path.removeprefix("/"), "USER": unquote(parts.username or ""), "HOST": unquote(parts.hostname or "")}
    query = dict(pair.split("=", 1) for pair in parts.query.split("&") if pair)
    given = {
        "HOST": unquote(query.get("host", "")) or found["HOST"],
        "PORT": query.get("port", str(parts.port or "")),
        "USER": unquote(query.get("user", "")) or found["USER"],
        "PASSWORD": unquote(parts.password or ""),
    }
    return {"ENGINE": "django.db.backends.postgresql", **found, **given}


def sqlite_settings(path: Path | str) -> dict[str, Any]:
    """Write a file as Django's settings do, as the guide recommends."""
    options = {"timeout": 20, "transaction_mode": "IMMEDIATE"}
    return {"ENGINE": "django.db.backends.sqlite3", "NAME": str(path), "OPTIONS": options}


def environment(**more: str) -> dict[str, str]:
    """Give the environment of a project's commands, without what other tests say to Windlass or Django."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("WINDLASS_", "DJANGO_"))}
    return {**kept, "PYTHONDONTWRITEBYTECODE": "1", **more}


def run_tests(database: Mapping[str, Any], *labels: str, python: str = sys.executable) -> str:
    """Run the project's tests as `manage.py test` does, and give what they printed."""
    environ = environment(DJANGO_SETTINGS_MODULE="project.settings", PYTHONPATH=str(HERE), PROJECT_DATABASE=json.dumps(database))
    command = [python, "-W", "error", "-m", "django", "test", "--noinput", *(labels or ("project.app",))]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^Ran \d\d tests", done.stderr, re.MULTILINE), done.stderr
    return done.stderr


def test_on_sqlite_in_memory() -> None:
    assert "skipped=4" in run_tests(sqlite_settings(":memory:"))


def test_another_sqlite_library_than_djangos_is_refused() -> None:
    environ = environment(
        DJANGO_SETTINGS_MODULE="project.settings",
        PYTHONPATH=str(HERE),
        PROJECT_DATABASE=json.dumps(sqlite_settings(":memory:")),
        WINDLASS_SQLITE_DRIVER="pysqlite3",
    )
    command = [sys.executable, "-m", "django", "check"]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1
    assert "windlass.E007" in done.stderr


def test_a_line_of_djangos_is_on_the_terminal_once(tmp_path: Path) -> None:
    code = """
import logging
from windlass.telemetry import configure_logging
configure_logging()
from windlass.django.application import default
from django.conf import settings
settings.DEBUG = True
logging.getLogger("django.tasks").info("a task ended")
"""
    environ = environment(
        DJANGO_SETTINGS_MODULE="project.settings",
        PYTHONPATH=str(HERE),
        PROJECT_DATABASE=json.dumps(sqlite_settings(tmp_path / "file.db")),
    )
    done = subprocess.run([sys.executable, "-c", code], env=environ, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("a task ended") == 1, done.stderr


def test_on_a_sqlite_file(tmp_path: Path) -> None:
    settings = sqlite_settings(tmp_path / "project.sqlite3")
    assert "skipped" not in run_tests({**settings, "TEST": {"NAME": str(tmp_path / "test.sqlite3")}})


def test_on_postgres(postgres_server: PostgresServer, postgres_dsn: str) -> None:
    del postgres_server
    assert "skipped" not in run_tests(postgres_settings(postgres_dsn))
