"""An environment with Django 6, which needs a newer Python than Windlass does."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]
VARIABLE = "WINDLASS_TEST_DJANGO6_PYTHON"
_PLACE = ROOT / ".dev" / "django6"
_NAMES = ("python3.14", "python3.13", "python3.12")
_ASK = "import sys; print(sys.executable if sys.version_info >= (3, 12) else '')"
_WANTED = ("--editable", ".[django,postgres,server]")


def newer_python() -> str | None:
    """Find a Python that Django 6 runs on: this one, the one that the environment names, or one on the path."""
    if sys.version_info >= (3, 12):
        return sys.executable
    named = os.environ.get(VARIABLE)
    found = [named] if named else [path for name in _NAMES if (path := shutil.which(name))]
    # A pyenv has commands of that name that work only for the versions that are switched on.
    shown = subprocess.run(["pyenv", "versions", "--bare"], capture_output=True, text=True, check=False) if _has_pyenv() else None
    versions = [""] if shown is None else ["", *shown.stdout.split()]
    for path in found:
        for version in versions:
            environ = {**os.environ, "PYENV_VERSION": version} if version else None
            done = subprocess.run([path, "-c", _ASK], capture_output=True, text=True, check=False, env=environ)
            if done.returncode == 0 and done.stdout.strip():
                return done.stdout.strip()
    return None


def _has_pyenv() -> bool:
    return shutil.which("pyenv") is not None


@contextmanager
def _only_one() -> Iterator[None]:
    _PLACE.mkdir(parents=True, exist_ok=True)
    with (_PLACE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def environment_with_django6(python: str) -> Path:
    """Make the environment, or find the one that was made before; gives its Python."""
    made = _PLACE / "venv" / "bin" / "python"
    stamp = _PLACE / "installed"
    wanted = f"{python}\n{(ROOT / 'pyproject.toml').read_text(encoding='utf-8')}"
    with _only_one():
        if made.exists() and stamp.is_file() and stamp.read_text(encoding="utf-8") == wanted:
            return made
        uv = ROOT / ".dev" / "uv" / "bin" / "uv"
        for command in (
            [str(uv), "venv", "--quiet", "--clear", "--python", python, str(_PLACE / "venv")],
            [str(uv), "pip", "install", "--quiet", "--python", str(made), *_WANTED, "django>=6"],
        ):
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
            assert done.returncode == 0, done.stderr
        stamp.write_text(wanted, encoding="utf-8")
        return made


def django_tests() -> Path | None:
    """Download the tests that Django's own source has, once; None where there is no index to ask."""
    return _from_source("django", ">=6,<7", "tests/tasks/test_tasks.py", 2)


def django_tasks_db_tests() -> Path | None:
    """Download the tests that the source of django-tasks-db has, once; None where there is no index to ask."""
    return _from_source("django-tasks-db", "==0.13.0", "tests/tests.py", 0)


def _from_source(project: str, version: str, wanted: str, above: int) -> Path | None:
    """Unpack the source of a project, and give the file in it, or the folder that is so many levels above that."""
    place = ROOT / ".dev" / f"{project}-source"
    with _only_one():
        if not list(place.glob(f"*/{wanted}")):
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir(parents=True)
            # A virtual environment made by uv has no pip of its own.
            pip = ["pip"] if shutil.which("pip") else [sys.executable, "-m", "pip"]
            asked = [*pip, "download", "--quiet", "--no-deps", "--no-binary", project, "--ignore-requires-python"]
            asked += ["--dest", str(place), f"{project}{version}"]
            if subprocess.run(asked, capture_output=True, timeout=300, check=False).returncode:
                return None
            for archive in place.glob("*.tar.gz"):
                shutil.unpack_archive(archive, place, filter="data")
        [found] = place.glob(f"*/{wanted}")
        return [found, *found.parents][above]
