from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.postgres_server import PostgresServer
from tests.support.stores import fresh_postgres

DOCS = Path(__file__).resolve().parents[2] / "docs"
BLOCK = re.compile(r"^```python(?: (\w+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: str, *wanted: str) -> str:
    found = BLOCK.findall((DOCS / page).read_text(encoding="utf-8"))
    assert found
    return "\n".join(text for mark, text in found if mark in wanted)


def run(program: str, folder: Path) -> None:
    script = folder / "page.py"
    script.write_text(program, encoding="utf-8")
    environ = {name: value for name, value in os.environ.items() if not name.startswith("WINDLASS_")}
    done = subprocess.run(
        [sys.executable, "-W", "error", script], cwd=folder, env=environ, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr


def test_every_example_of_the_page_runs(tmp_path: Path, postgres_server: PostgresServer) -> None:
    with fresh_postgres(postgres_server) as dsn:
        run(blocks("tasks.md", "", "postgres").replace("postgresql://localhost/shop", dsn), tmp_path)


def test_the_example_of_public_names_runs(tmp_path: Path) -> None:
    run(blocks("api.md", ""), tmp_path)


def test_the_sqlalchemy_example_of_the_page_runs(tmp_path: Path) -> None:
    if importlib.util.find_spec("sqlalchemy") is None:
        pytest.skip("SQLAlchemy is not installed: its example is NOT tested here")
    run(blocks("tasks.md", "", "sqlalchemy"), tmp_path)


def test_the_examples_about_the_store_run(tmp_path: Path) -> None:
    run(blocks("store.md", ""), tmp_path)


def test_the_examples_about_schedules_run(tmp_path: Path) -> None:
    run(blocks("schedules.md", ""), tmp_path)
