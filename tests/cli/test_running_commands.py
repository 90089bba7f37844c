"""What `windlass worker` and `windlass up` print and log while they run."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.postgres_server import PostgresServer
from windlass import Windlass
from windlass.cli.banner import database_line, worker_lines

JOBS = """
import time

from windlass import Windlass

app = Windlass(name="shop")


@app.task
async def add(a: int, b: int) -> int:
    return a + b


@app.task(every="1h", lane="reports")
async def report() -> None:
    pass


@app.task(timeout="1s", max_attempts=1)
async def stuck() -> None:
    time.sleep(300)
"""


class Running:
    """A command that goes on, with what it has said so far."""

    def __init__(self, folder: Path, process: subprocess.Popen[bytes]) -> None:
        self._out, self._err = folder / "out", folder / "err"
        self.process = process

    @property
    def printed(self) -> str:
        return self._out.read_text()

    @property
    def logged(self) -> str:
        return self._err.read_text()

    def await_words(self, words: str, *, times: int = 1) -> None:
        late = time.monotonic() + 30
        while (self.printed + self.logged).count(words) < times:
            assert self.process.poll() is None, self.logged
            assert time.monotonic() < late, f"{words!r} never came: {self.printed}{self.logged}"
            time.sleep(0.05)

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(timeout=30) == 0, self.logged


@contextmanager
def running(folder: Path, *arguments: str, **environment: str) -> Iterator[Running]:
    (folder / "jobs.py").write_text(JOBS, encoding="utf-8")
    with (folder / "out").open("wb") as out, (folder / "err").open("wb") as err:
        process = subprocess.Popen(
            [sys.executable, "-m", "windlass", *arguments], cwd=folder, env=os.environ | environment, stdout=out, stderr=err
        )
    try:
        yield Running(folder, process)
    finally:
        process.kill()
        process.wait()


def client(folder: Path) -> Windlass:
    return Windlass(f"sqlite:///{folder / 'windlass.db'}", accept_unknown=True)


def test_a_worker_prints_what_it_runs_and_logs_a_line_for_each_finished_run(tmp_path: Path) -> None:
    with running(tmp_path, "worker", "jobs:app", "--pools", "reports=1,*=2") as worker:
        worker.await_words("stop ")
        assert re.match(r"windlass \S+: worker and upkeep\n", worker.printed)
        assert "  database  windlass.db (SQLite)\n" in worker.printed
        assert "  slots     reports=1, *=2\n" in worker.printed
        assert "  tasks     add, report, stuck\n" in worker.printed
        assert "  schedules report\n" in worker.printed
        with client(tmp_path) as app:
            job = app.enqueue_sync("add", {"a": 1, "b": 2})
            assert app.wait_sync(job, timeout=30) == 3
        worker.await_words("job completed")
        [line] = [line for line in worker.logged.splitlines() if "job_id=" in line]
        assert re.search(r" INFO +job completed job_id=\d+ task=add attempt=1 correlation_id=\S+ took=\d\.\d{3}s$", line)
        worker.stop()


def test_up_logs_a_line_for_each_finished_run_by_default(tmp_path: Path) -> None:
    with running(tmp_path, "up", "jobs:app", "--port", "0") as up:
        up.await_words("try:")
        assert "  schedules    report\n" in up.printed
        with client(tmp_path) as app:
            app.wait_sync(app.enqueue_sync("add", {"a": 1, "b": 2}), timeout=30)
        up.await_words("job completed")
        up.stop()


def test_up_starts_itself_anew_when_a_handler_blocks_it_for_good(tmp_path: Path) -> None:
    with running(tmp_path, "up", "jobs:app", "--port", "0", WINDLASS_GRACE="1s") as up:
        up.await_words("try:")
        with client(tmp_path) as app:
            stuck = app.enqueue_sync("stuck", max_attempts=1)
            up.await_words("this process is replaced")
            up.await_words("listening on", times=2)
            [run] = app.executions_sync(stuck)
            assert run.reason == "timed_out"
            assert app.wait_sync(app.enqueue_sync("add", {"a": 1, "b": 2}), timeout=30) == 3
        up.stop()


def test_a_worker_warns_once_of_jobs_that_nobody_runs(tmp_path: Path) -> None:
    with running(tmp_path, "worker", "jobs:app", "--pools", "fast=1,default=1") as worker:
        worker.await_words("stop ")
        with client(tmp_path) as app:
            for _ in range(3):
                app.enqueue_sync("emial")
            app.enqueue_sync("report", lane="reports")
            worker.await_words("no worker")
            worker.await_words("'reports'")
        assert (
            "3 jobs wait for task 'emial' in lane 'default', and no worker has code for it; check the name, or" in worker.logged
        )
        assert (
            "1 job waits in lane 'reports', task 'report', and no worker with its code serves that lane; start" in worker.logged
        )
        worker.stop()


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("sqlite:///jobs.db", "jobs.db (SQLite)"),
        ("sqlite:////var/lib/jobs.db", "/var/lib/jobs.db (SQLite)"),
        ("postgresql://ada:s3cret@db.example.org:5433/jobs?password=s3cret", "postgresql://ada@db.example.org:5433/jobs"),
        ("postgresql:///jobs", "postgresql:///jobs"),
    ],
)
def test_the_database_is_shown_without_a_password(url: str, shown: str) -> None:
    assert database_line(Windlass(url)) == ("database", shown)


@pytest.fixture
def empty_url(postgres_server: PostgresServer) -> Iterator[str]:
    name = "windlass_running"
    yield postgres_server.create_database(name)
    postgres_server.drop_database(name)


def test_a_worker_on_postgres_prints_where_its_jobs_are(tmp_path: Path, empty_url: str) -> None:
    with running(tmp_path, "worker", "jobs:app", "--migrate", WINDLASS_DATABASE_URL=empty_url) as worker:
        worker.await_words("stop ")
        assert "  database  postgresql://" in worker.printed
        assert "/windlass_running\n" in worker.printed
        worker.stop()


def test_the_banner_counts_the_tasks_that_do_not_fit_a_line() -> None:
    app = Windlass("sqlite:///:memory:")
    for number in range(60):
        app.task(name=f"send_something_{number:02}")(lambda: None)
    line = dict(worker_lines(app))["tasks"]
    assert len(line) < 120
    assert line.startswith("send_something_00, send_something_01, ")
    assert line.endswith(" and 55 more")


def memory_mib(pid: int) -> float:
    """Return what a process has in memory."""
    [line] = [line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS")]
    return int(line.split()[1]) / 1024


@pytest.mark.skipif(sys.platform != "linux", reason="asks /proc for sizes")
def test_process_that_keeps_workers_running_is_small_and_starts_another_for_one_that_is_killed(tmp_path: Path) -> None:
    with running(tmp_path, "worker", "jobs:app", "--migrate") as worker:
        worker.await_words("stop      Ctrl-C")
        keeper = worker.process.pid
        assert memory_mib(keeper) < 20
        [first] = children_of(keeper)
        os.kill(first, signal.SIGKILL)
        worker.await_words("was killed by SIGKILL; the next one starts in")
        late = time.monotonic() + 30
        while not (found := [pid for pid in children_of(keeper) if pid != first]) and time.monotonic() < late:
            time.sleep(0.05)
        assert len(found) == 1
        worker.stop()


def children_of(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
