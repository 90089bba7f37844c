"""The command line, as typed."""

from __future__ import annotations

import os
import re
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.postgres_server import PostgresServer

APP = """
from windlass import Windlass

app = Windlass()
other = "not an application"


@app.task
def add(a: int, b: int) -> int:
    return a + b
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "jobs.py").write_text(APP, encoding="utf-8")
    return tmp_path


def windlass(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "windlass", *arguments]
    return subprocess.run(
        command, cwd=folder, env=os.environ | environment, capture_output=True, text=True, timeout=60, check=False
    )


def test_help_names_the_commands(folder: Path) -> None:
    done = windlass(folder, "--help")
    assert done.returncode == 0
    assert all(name in done.stdout for name in ("worker", "migrate"))


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("jobs", "module:attribute"),
        ("nothing:app", "there is no module 'nothing'"),
        ("jobs:missing", "has no 'missing'"),
        ("jobs:other", "is a str, not a Windlass application"),
    ],
)
def test_a_wrong_target_is_named_with_what_to_do(folder: Path, target: str, words: str) -> None:
    done = windlass(folder, "worker", target)
    assert (done.returncode, words in done.stderr) == (2, True), done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("name", "value"), [("WINDLASS_POOLS", "fast"), ("WINDLASS_LEASE_SECONDS", "soon"), ("WINDLASS_UNHEARD_OF", "1")]
)
def test_a_bad_setting_is_named(folder: Path, name: str, value: str) -> None:
    done = windlass(folder, "worker", "jobs:app", **{name: value})
    assert (done.returncode, name in done.stderr) == (2, True), done.stderr


def test_an_unknown_log_level_is_named(folder: Path) -> None:
    done = windlass(folder, "worker", "jobs:app", "--log-level", "loud")
    assert (done.returncode, "'loud'" in done.stderr) == (2, True), done.stderr


def test_a_command_without_files_says_so_in_a_line(folder: Path) -> None:
    def allow_few_files() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (10, 10))

    done = subprocess.run(
        [sys.executable, "-m", "windlass", "up", "jobs:app"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        preexec_fn=allow_few_files,
    )
    assert done.returncode == 1
    assert re.fullmatch("windlass: this process may open no more files, raise `ulimit -n`: .*\n", done.stderr), done.stderr


GROUPED = """
import asyncio
from contextlib import asynccontextmanager
from windlass import StoreUnavailable, Windlass

app = Windlass("sqlite:///jobs.db")

@app.lifespan
@asynccontextmanager
async def lifespan():
    async with asyncio.TaskGroup():
        raise StoreUnavailable("gone")
    yield
"""


def test_an_error_that_ends_a_task_group_is_an_error_in_a_line(folder: Path) -> None:
    (folder / "grouped.py").write_text(GROUPED, encoding="utf-8")
    done = windlass(folder, "up", "grouped:app", "--port", "0")
    assert (done.returncode, "Traceback" in done.stderr) == (1, False), done.stderr
    assert "gone; is the database running" in done.stderr


def test_code_that_cannot_be_read_is_an_error_in_a_line(folder: Path) -> None:
    code = "import resource, windlass.__main__ as m; resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3)); m.main()"
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert re.fullmatch("windlass: its code cannot be read: .*\n", done.stderr), done.stderr


@pytest.fixture
def empty_url(postgres_server: PostgresServer) -> Iterator[str]:
    name = "windlass_empty"
    yield postgres_server.create_database(name)
    postgres_server.drop_database(name)


def test_postgres_asks_for_its_tables_and_migrate_makes_them(folder: Path, empty_url: str) -> None:
    refused = windlass(folder, "worker", "jobs:app", WINDLASS_DATABASE_URL=empty_url)
    assert (refused.returncode, "windlass migrate" in refused.stderr) == (2, True), refused.stderr
    made = windlass(folder, "migrate", WINDLASS_DATABASE_URL=empty_url)
    assert (made.returncode, "up to date" in made.stdout) == (0, True), made.stderr
    again = windlass(folder, "migrate", "--database", empty_url)
    assert again.returncode == 0, again.stderr


def test_a_worker_runs_jobs_until_it_is_told_to_stop(folder: Path) -> None:
    code = "from jobs import app, add; print(add.enqueue_sync(a=2, b=3).id); app.close()"
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, timeout=60, check=True)
    job_id = int(done.stdout)
    worker = subprocess.Popen(
        [sys.executable, "-m", "windlass", "worker", "jobs:app", "--json-logs"], cwd=folder, stderr=subprocess.PIPE, text=True
    )
    look = f"from jobs import app; print(app.get_sync({job_id}).state); app.close()"
    give_up = time.monotonic() + 30
    state = ""
    while state != "completed" and time.monotonic() < give_up:
        found = subprocess.run([sys.executable, "-c", look], cwd=folder, capture_output=True, text=True, timeout=60, check=True)
        state = found.stdout.strip()
    worker.send_signal(signal.SIGTERM)
    _, lines = worker.communicate(timeout=30)
    assert (state, worker.returncode) == ("completed", 0), lines
    assert '"message": "job completed"' in lines


def test_a_worker_whose_supervisor_died_before_it_was_there_ends_by_itself(folder: Path) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    done = windlass(folder, "worker", "jobs:app", "--alone", "--parent", str(gone.pid))
    assert (done.returncode, done.stderr) == (0, "")
