"""Commands where the only SQLite is one with the WAL-reset bug."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from windlass.store.sqlite import has_wal_reset_bug

pytestmark = pytest.mark.skipif(not has_wal_reset_bug(sqlite3.sqlite_version_info), reason="this Python's SQLite has no such bug")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Give a folder; what runs there has no pysqlite3."""
    (tmp_path / "pysqlite3.py").write_text("raise ImportError('not installed')\n")
    return tmp_path


def run(folder: Path, *command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("WINDLASS_")}
    kept |= {"PYTHONPATH": str(folder), **environment}
    return subprocess.run(
        [sys.executable, "-m", "windlass", *command], cwd=folder, env=kept, capture_output=True, text=True, check=False
    )


def test_a_new_file_is_announced_once_and_an_existing_one_not(folder: Path) -> None:
    made = run(folder, "migrate")
    assert made.stderr.count("has the WAL-reset bug") == 1
    assert "windlass.db keeps a rollback journal; install windlass[sqlite] for a fixed build" in made.stderr
    assert "WAL-reset" not in run(folder, "jobs").stderr
    moved = run(folder, "move", "sqlite:///windlass.db", "sqlite:///other.db")
    assert (moved.returncode, moved.stderr.count("has the WAL-reset bug")) == (0, 1)


def test_a_file_that_uses_wal_is_announced_by_each_command(folder: Path) -> None:
    run(folder, "migrate")
    connection = sqlite3.connect(folder / "windlass.db")
    connection.execute("pragma journal_mode = wal")
    connection.close()
    assert run(folder, "jobs").stderr.count("has the WAL-reset bug and windlass.db uses WAL") == 1


@pytest.mark.parametrize(
    ("environment", "remedy"),
    [({}, "install windlass[sqlite]"), ({"WINDLASS_SQLITE_DRIVER": "sqlite3"}, "use a Python with SQLite 3.51.3 or later")],
    ids=["chosen", "prescribed"],
)
def test_the_doctor_never_advises_wal_and_names_a_remedy_that_works(
    folder: Path, environment: dict[str, str], remedy: str
) -> None:
    run(folder, "migrate", **environment)
    told = run(folder, "doctor", **environment).stdout
    assert "ok       journal" in told
    assert "journal_mode = wal" not in told
    assert remedy in told
