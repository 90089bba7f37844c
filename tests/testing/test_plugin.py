from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

JOBS = """
from windlass import Windlass

app = Windlass("sqlite:////nowhere/jobs.db")

@app.task(max_attempts=2)
async def email(to: str) -> str:
    if to == "bad":
        raise ValueError("bad address")
    return to
"""
INI = "[pytest]\nwindlass_app = jobs:app\nanyio_mode = auto\nfilterwarnings = error\npythonpath = .\n"
PLUGINS = ("-p", "windlass.testing.plugin", "-p", "anyio.pytest_plugin")


def run(folder: Path, test: str, *, ini: str = INI, plugins: tuple[str, ...] = PLUGINS) -> tuple[int, str]:
    (folder / "jobs.py").write_text(JOBS, encoding="utf-8")
    (folder / "test_it.py").write_text(test, encoding="utf-8")
    (folder / "pytest.ini").write_text(ini, encoding="utf-8")
    # Without entry points: they are those of what is installed, which need not be this code.
    environ = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = [sys.executable, "-m", "pytest", "-q", *plugins, "test_it.py"]
    done = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, timeout=120, check=False)
    return done.returncode, done.stdout + done.stderr


def test_each_test_has_the_application_on_a_database_of_its_own(tmp_path: Path) -> None:
    code, told = run(
        tmp_path,
        """
import pytest
from jobs import app, email
from windlass.testing import assert_enqueued, enqueued, run_all, run_all_sync

@pytest.fixture
def anyio_backend():
    return "asyncio"

@pytest.mark.parametrize("turn", range(2))
async def test_asynchronous(windlass_app, windlass_clock, turn):
    assert windlass_app is app and enqueued(app) == []
    await email.enqueue(to="bad")
    assert len(await run_all(app)) == 1
    windlass_clock.advance(minutes=5)
    assert len(await run_all(app)) == 1

@pytest.mark.parametrize("turn", range(2))
def test_synchronous(windlass_app, turn):
    assert enqueued(app) == []
    email.using(delay="1h").enqueue_sync(to="ann")
    assert_enqueued(app, email, to="ann")
    assert run_all_sync(app) == []
""",
    )
    assert (code, "4 passed" in told) == (0, True), told


def test_the_application_the_place_and_the_time_can_be_overridden(tmp_path: Path) -> None:
    code, told = run(
        tmp_path,
        """
from datetime import UTC, datetime
import pytest
import jobs
from windlass.testing import FakeClock, enqueued, run_all_sync

@pytest.fixture
def windlass_application():
    return jobs.app

@pytest.fixture
def windlass_clock():
    return FakeClock(datetime(2030, 1, 1, tzinfo=UTC))

@pytest.fixture
def windlass_database_url(tmp_path):
    return f"sqlite:///{tmp_path}/jobs.db"

def test_it(windlass_app, windlass_clock, tmp_path):
    jobs.email.enqueue_sync(to="ann")
    assert (tmp_path / "jobs.db").exists()
    assert enqueued(jobs.app)[0].created_at == windlass_clock.now() == datetime(2030, 1, 1, tzinfo=UTC)
    assert len(run_all_sync(jobs.app)) == 1
""",
        ini=INI.replace("windlass_app = jobs:app\n", ""),
    )
    assert (code, "1 passed" in told) == (0, True), told


def test_without_an_application_it_says_what_to_write(tmp_path: Path) -> None:
    code, told = run(tmp_path, "def test_it(windlass_app): ...", ini="[pytest]\n")
    assert code != 0
    assert "windlass_app = shop.jobs:app" in told


def test_a_failed_check_reads_well(tmp_path: Path) -> None:
    code, told = run(
        tmp_path,
        """
from jobs import app, email
from windlass.testing import assert_enqueued

def test_it(windlass_app):
    email.enqueue_sync(to="ann")
    assert_enqueued(app, email, to="bob")
""",
    )
    assert code == 1
    assert "AssertionError: a job email(to='bob') was not enqueued; of this task there are:" in told
    assert "email(to='ann')  job 1, pending" in told


def test_those_who_do_not_use_it_do_not_notice_it(tmp_path: Path) -> None:
    code, told = run(
        tmp_path,
        """
import sys

def test_it():
    loaded = {name for name in sys.modules if name.startswith("windlass")}
    light = {"windlass.core", "windlass.core.late_names"}
    assert loaded == {"windlass", "windlass.testing", "windlass.testing.plugin", *light}
""",
    )
    assert code == 0, told


def test_the_helpers_do_not_need_pytest() -> None:
    code = "import sys, windlass.testing as t; [getattr(t, name) for name in t._HOME_OF]; assert 'pytest' not in sys.modules"
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, timeout=60)


def test_the_package_declares_the_plugin() -> None:
    project = Path(__file__).resolve().parents[2] / "pyproject.toml"
    declared = tomllib.loads(project.read_text(encoding="utf-8"))["project"]["entry-points"]["pytest11"]
    assert declared == {"windlass": "windlass.testing.plugin"}


def test_a_name_that_is_not_there_is_an_ordinary_error() -> None:
    import windlass.testing  # noqa: PLC0415 - the module itself is the subject

    assert not hasattr(windlass.testing, "run_some")
    assert "run_all" in dir(windlass.testing)
    with pytest.raises(AttributeError, match="run_some"):
        windlass.testing.run_some  # noqa: B018 - it must not be there
