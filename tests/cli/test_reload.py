"""`--reload`: the command starts anew when a file of the application changes, and loses no job."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from windlass import Windlass
from windlass.core.job import JobState, NewJob

_PATIENCE_S = 120
_APP = """
from windlass import Windlass

app = Windlass()


@app.task(name="version")
async def version() -> int:
    return {number}
"""


def until(condition: Callable[[], object], process: subprocess.Popen[bytes]) -> None:
    give_up = time.monotonic() + _PATIENCE_S
    while not condition():
        assert process.poll() is None, "the command ended"
        assert time.monotonic() < give_up
        time.sleep(0.05)


@contextmanager
def reloading(folder: Path, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    env = os.environ | {"WINDLASS_DATABASE_URL": f"sqlite:///{folder / 'jobs.db'}"}
    command = [sys.executable, "-m", "windlass", *arguments, "--reload"]
    with (folder / "err").open("wb") as log:
        process = subprocess.Popen(command, cwd=folder, env=env, stdout=log, stderr=log)
    try:
        yield process
        process.send_signal(signal.SIGINT)
        assert process.wait(_PATIENCE_S) == 0
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("command", ["worker", "up"])
def test_new_code_runs_and_a_broken_file_is_survived(command: str, tmp_path: Path) -> None:
    file = tmp_path / "jobs.py"
    file.write_text(_APP.format(number=1))
    port = ["--port", "0"] if command == "up" else []
    with Windlass(f"sqlite:///{tmp_path / 'jobs.db'}") as app:
        app.migrate()

        def answered(number: int, process: subprocess.Popen[bytes]) -> None:
            [job] = app.enqueue_jobs_sync([NewJob(task="version")])
            until(lambda: app.get_sync(job.id).state is JobState.COMPLETED, process)
            assert app.executions_sync(job.id)[0].result_json == str(number)

        with reloading(tmp_path, command, "jobs:app", *port) as process:
            answered(1, process)
            file.write_text("this is no Python")
            until(lambda: b"it ended with exit code 2" in (tmp_path / "err").read_bytes(), process)
            file.write_text(_APP.format(number=22))
            answered(22, process)
    told = (tmp_path / "err").read_text()
    assert told.count("jobs.py changed; starting anew") == 2
