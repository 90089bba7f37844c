"""`windlass remote` as a process of its own."""

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

from tests.support.raw import execute
from tests.web.serving import listening
from windlass import Windlass
from windlass.core.access import NewToken, Role
from windlass.core.blocking import run
from windlass.core.job import Job, JobState, NewJob, RunReason, WaitReason
from windlass.store import Store

CODE = """
import os, time
from pathlib import Path
from windlass import JobContext, Windlass

app = Windlass(grace="0.2s", lease_seconds=1)


@app.task(lane="pull")
async def double(n: int) -> int:
    return 2 * n


@app.task(lane="pull", isolation="process")
def holds(ctx: JobContext) -> str:
    if ctx.attempt > 1:
        return "again"
    ctx.progress_sync(cursor="here", message=str(os.getppid()))
    time.sleep(60)
    return "late"


@app.task(lane="pull", max_attempts=1)
async def enqueues() -> None:
    await double.enqueue(n=1)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "code.py").unlink(missing_ok=True)
    place = tmp_path / "elsewhere"
    place.mkdir()
    (place / "shop.py").write_text(CODE)
    return place


@pytest.fixture
def house(url: str) -> Iterator[tuple[str, Windlass, str]]:
    """Give a server's address, the test's own way to its database, and a worker's token."""
    with (
        listening(Windlass(url, admin_token="static-admin-token", lease_seconds=1), has_upkeep=True) as port,
        Windlass(url) as app,
    ):
        token = run(run(app.blocking_store()).tokens.mint(NewToken(name="shop", role=Role.WORKER))).secret
        yield f"http://127.0.0.1:{port}", app, token


@contextmanager
def remote(folder: Path, address: str, **environment: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "windlass", "remote", address, "shop:app", "--slots", "2"]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("WINDLASS_")}
    process = subprocess.Popen(
        command, cwd=folder, env=kept | environment, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=30)


def enqueue(app: Windlass, task: str, payload: str = "{}") -> int:
    return app.enqueue_jobs_sync([NewJob(task=task, lane="pull", payload=payload, max_attempts=3)])[0].id


def until(app: Windlass, number: int, is_so: Callable[[Job], bool]) -> Job:
    ends_at = time.monotonic() + 30
    while not is_so(job := app.get_sync(number)):
        assert time.monotonic() < ends_at, job
        time.sleep(0.02)
    return job


def test_a_process_without_a_database_runs_jobs_and_gives_them_back_on_sigterm(
    house: tuple[str, Windlass, str], folder: Path
) -> None:
    address, app, token = house
    done, lost, held = enqueue(app, "double", '{"n":4}'), enqueue(app, "enqueues"), enqueue(app, "holds")
    with remote(folder, address, WINDLASS_TOKEN=token) as process:
        assert until(app, done, lambda job: job.state == "completed").attempt == 1
        failed = until(app, lost, lambda job: job.last_error is not None)
        assert "this process has no database" in (failed.last_error or "")
        until(app, held, lambda job: job.last_cursor == "here")
        app.lanes.pause_sync("pull")
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
    job = app.get_sync(held)
    assert (job.wait_reason, job.attempt, job.crashes, job.last_cursor) == (WaitReason.RELEASED, 0, 0, "here")
    assert sorted(path.name for path in folder.iterdir() if path.suffix != ".pyc") in (["__pycache__", "shop.py"], ["shop.py"])


async def test_a_killed_worker_costs_one_attempt_once_its_lease_is_over(url: str, folder: Path) -> None:
    # Whoever reclaims must have been in touch for a whole lease.
    keeper = Windlass(url, admin_token="static-admin-token", lease_seconds=1, reclaim_interval="0.2s")
    with listening(keeper, has_upkeep=True) as port:
        async with Windlass(url) as app:
            store = await app.store()
            assert isinstance(store, Store)
            token = (await store.tokens.mint(NewToken(name="shop", role=Role.WORKER))).secret
            number = enqueue(app, "holds")
            with remote(folder, f"http://127.0.0.1:{port}", WINDLASS_TOKEN=token):
                began = until(app, number, lambda job: job.progress_message is not None)
                # Held back until the dead worker's own poll is gone: given to that, the job would wait for another lease to end.
                app.lanes.pause_sync("pull")
                killed = int(began.progress_message or 0)
                os.kill(killed, signal.SIGKILL)
                await execute(store, f"update windlass_jobs set lease_expires_at = claimed_at where id = {number}")
                until(app, number, lambda job: job.state is not JobState.RUNNING and not Path(f"/proc/{killed}").exists())
                app.lanes.resume_sync("pull")
                # The supervisor has started the next one, which finds it where it was left.
                again = until(app, number, lambda job: job.state in {JobState.COMPLETED, JobState.FAILED})
            runs = (await store.list_executions(number))[::-1]
    assert (again.state, again.attempt, again.last_cursor) == (JobState.COMPLETED, 2, "here")
    assert [(run.reason, run.result_json) for run in runs] == [(RunReason.LEASE_EXPIRED, None), (None, '"again"')]


def test_what_cannot_work_is_said_at_once(house: tuple[str, Windlass, str], folder: Path) -> None:
    address, _, token = house
    for environment, said in (
        ({}, "WINDLASS_TOKEN"),
        ({"WINDLASS_TOKEN": "wdl_nobody"}, "credential"),
        ({"WINDLASS_TOKEN": token, "WINDLASS_TASKS": "none"}, "the application has no none"),
    ):
        with remote(folder, address, **environment) as process:
            _, told = process.communicate(timeout=30)
            assert (process.returncode, said in told) == (2, True), told
