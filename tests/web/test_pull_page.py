"""The page about pull workers: its walk-through, its programs and its answers, as they stand."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from tests.support.stores import migrate_sqlite
from tests.web.serving import listening
from windlass import Windlass
from windlass.core.job import JobState, NewJob
from windlass.core.settings import SETTINGS
from windlass.store import open_store
from windlass.web import pull, reports

PAGE = (Path(__file__).parents[2] / "docs" / "pull-workers.md").read_text(encoding="utf-8")
WALK, SHELL = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
[SAID] = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)
[PYTHON] = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
ANSWERS = [json.loads(text) for text in re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)]
SECRET = "a-signing-secret-of-workers"


def run(command: list[str], folder: Path, **env: str) -> str:
    here = {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        command, cwd=folder, env=os.environ | here | env, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def need(*programs: str) -> None:
    missing = [name for name in programs if shutil.which(name) is None]
    if missing:
        pytest.skip(f"THE WALK-THROUGH WAS NOT RUN: this machine has no {', '.join(missing)}")


def test_the_walk_through_says_what_the_page_says(tmp_path: Path) -> None:
    need("bash", "curl", "jq")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    assert run(["bash", "-eu", "-c", WALK], tmp_path, WINDLASS_PORT=str(port)) == SAID


def test_the_walk_through_is_forty_lines_at_most() -> None:
    assert len([line for line in WALK.splitlines() if line.strip()]) <= 40


async def test_the_signing_programs_work_as_they_stand(tmp_path: Path) -> None:
    need("bash", "curl", "jq", "openssl")
    path = tmp_path / "windlass.db"
    migrate_sqlite(path)
    url = f"sqlite:///{path}"
    store = open_store(url, rng=Random(1))
    made = await store.enqueue([NewJob(task="leads", lane="pull") for _ in range(2)])
    with listening(Windlass(url, worker_signing_secret=SECRET)) as port:
        env = {"WINDLASS_URL": f"http://127.0.0.1:{port}", "SIGNING_SECRET": SECRET}
        assert "'done': True" in run([sys.executable, "-c", PYTHON], tmp_path, **env)
        assert json.loads(run(["bash", "-eu", "-c", SHELL], tmp_path, **env))["done"] is True
    left = [await store.get(one.id) for one in made]
    assert [job.state for job in left] == [JobState.COMPLETED] * 2
    assert [(await store.list_executions(one.id))[0].worker for one in made] == ["signer-1", "signer-2"]
    await store.aclose()


def test_the_answers_have_the_fields_that_are_sent() -> None:
    pulled, reported, beat, status = ANSWERS
    assert set(pulled["job"]) == set(pull.PulledOut.model_fields)
    assert set(pulled) | {"stopped"} == set(pull.PullOut.model_fields)
    assert set(reported) | {"idempotent", "state"} == set(reports.ReportOut.model_fields)
    assert set(beat) == set(reports.HeartbeatOut.model_fields)
    assert set(status) == set(reports.StatusOut.model_fields)


def test_the_settings_are_those_there_are() -> None:
    for name, setting in SETTINGS.items():
        assert re.search(rf"`{name}` \| `?{setting.default}`? ", PAGE), name
