"""Which tasks and schedules each command brings, as typed. The commands of packs.md are typed here."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Command
from windlass import Windlass

ON_BOTH = pytest.mark.parametrize("url", ["sqlite-file", "postgres"], indirect=True)

JOBS = """
from windlass import Windlass

app = Windlass()


@app.task
async def work() -> str:
    return "done"


@app.task(every="1h")
async def hourly() -> None:
    pass
"""
COUNTING = """

from windlass import JobContext


@app.task
async def counting(ctx: JobContext) -> None:
    ctx.items_crawled = 3
"""
ABSENT = "raise ModuleNotFoundError(f'No module named {__name__!r}', name=__name__)\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Give a folder with an application in it."""
    (tmp_path / "jobs.py").write_text(JOBS, encoding="utf-8")
    return tmp_path


@contextmanager
def running(folder: Path, url: str, *typed: str, **environment: str) -> Iterator[subprocess.Popen[str]]:
    """Run a command until the block ends; it must end well."""
    process = subprocess.Popen(
        [sys.executable, "-m", "windlass", *typed],
        cwd=folder,
        env=os.environ | {"WINDLASS_DATABASE_URL": url} | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=60)
        assert process.returncode == 0, said
    finally:
        process.kill()
        process.communicate()


def await_workers(app: Windlass, process: subprocess.Popen[str], count: int = 1) -> None:
    late = time.monotonic() + 60
    while len(app.workers.list_sync()) < count:
        assert process.poll() is None, process.stderr and process.stderr.read()
        assert time.monotonic() < late
        time.sleep(0.05)


def greeting(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    said = ""
    for line in process.stdout:
        said += line
        if "try:" in line:
            return said
    assert process.stderr is not None
    raise AssertionError(process.stderr.read())


def known(app: Windlass) -> tuple[list[str], list[str]]:
    """List the tasks and the schedules in the database."""
    tasks = [task.name for task in app.known_tasks.list_sync() if task.is_declared]
    return tasks, sorted(job.name for job in app.list_sync().jobs if job.name)


@ON_BOTH
@pytest.mark.parametrize("command", ["up", "worker"])
def test_an_application_gets_no_task_and_no_schedule_it_did_not_declare(
    folder: Path, url: str, app: Windlass, command: str
) -> None:
    port = ("--port", "0") if command == "up" else ()
    with running(folder, url, command, "jobs:app", *port) as process:
        await_workers(app, process)
        job = app.enqueue_sync("work")
        assert app.wait_sync(job, timeout=30) == "done"
        assert known(app) == (["hourly", "work"], ["hourly"])


def test_a_run_shows_what_crawls_count_only_where_it_was_counted(folder: Path, app: Windlass, ask: Callable[..., Any]) -> None:
    (folder / "jobs.py").write_text(JOBS + COUNTING, encoding="utf-8")
    with running(folder, app.settings.database_url, "worker", "jobs:app") as process:
        await_workers(app, process)
        plain, counting = app.enqueue_sync("work"), app.enqueue_sync("counting")
        app.wait_sync(plain, timeout=30)
        app.wait_sync(counting, timeout=30)
    [run] = ask("job", str(plain.id))["runs"]
    assert not {"items_crawled", "items_indexed"} & run.keys()
    [run] = ask("job", str(counting.id))["runs"]
    assert (run["items_crawled"], "items_indexed" in run) == (3, False)


@pytest.mark.parametrize("way", ["option", "environment", "file"])
@pytest.mark.parametrize("command", ["up", "worker"])
def test_an_application_gets_the_packs_that_are_named(folder: Path, app: Windlass, *, command: str, way: str) -> None:
    url = app.settings.database_url
    typed = ("--port", "0") if command == "up" else ()
    environment = {"WINDLASS_PACKS": "hello,staleness"} if way == "environment" else {}
    if way == "option":
        typed = (*typed, "--packs", "hello,staleness")
    if way == "file":
        (folder / "windlass.toml").write_text('packs = ["hello", "staleness"]\n', encoding="utf-8")
    with running(folder, url, command, "jobs:app", *typed, **environment) as process:
        await_workers(app, process)
        assert known(app) == (["enqueue-stale", "hello", "hourly", "work"], ["enqueue-stale", "hourly"])


@ON_BOTH
def test_a_worker_of_packs_needs_no_module(folder: Path, url: str, app: Windlass) -> None:
    with running(folder, url, "worker", "--packs", "hello,notify") as process:
        await_workers(app, process)
        job = app.enqueue_sync("hello", {"name": "Ann"})
        assert app.wait_sync(job, timeout=30) == "Hello, Ann!"
        tasks, _ = known(app)
        assert {"email", "webhook"} <= set(tasks)
        assert "crawl" not in tasks


@ON_BOTH
def test_two_applications_may_bring_the_same_pack(folder: Path, url: str, app: Windlass) -> None:
    with running(folder, url, "worker", "jobs:app", "--packs", "staleness") as first:
        await_workers(app, first)
        with running(folder, url, "worker", "--packs", "staleness") as second:
            await_workers(app, second, count=2)
            owners = {job.name: job.declared_by for job in app.list_sync().jobs if job.name}
            assert owners == {"hourly": "app", "enqueue-stale": "windlass"}


def test_subscribing_to_a_feed_warns_while_no_worker_has_the_pack(
    folder: Path, url: str, app: Windlass, windlass: Command
) -> None:
    typed = ("feeds", "subscribe", "http://127.0.0.1:9/feed.xml", "ann")
    assert "`windlass worker --packs feeds`" in windlass(*typed).stderr
    with running(folder, url, "worker", "--packs", "feeds") as process:
        await_workers(app, process)
        assert windlass(*typed).stderr == ""


def test_a_worker_without_module_and_packs_says_what_to_type(windlass: Command) -> None:
    assert "--packs notify" in windlass("worker", code=2).output


def test_a_pack_that_does_not_exist_has_a_suggestion(windlass: Command) -> None:
    said = windlass("worker", "--packs", "notfy", code=2).output
    assert "did you mean notify?" in said


def test_a_server_knows_the_tasks_of_packs_that_are_named(folder: Path, url: str, windlass: Command) -> None:
    with running(folder, url, "serve", "--port", "0", "--packs", "hello") as process:
        said = greeting(process)
        [address] = re.findall(r"listening on (\S+)", said)
        [token] = set(re.findall(r"Bearer (wdl_[\w-]+)", said))
        command = ["curl", "-sS", "-H", f"Authorization: Bearer {token}", "-H", "Content-Type: application/json"]
        answer = subprocess.run(
            [*command, "-d", '{"task": "hello", "payload": {"name": 5}}', f"{address}/api/v1/jobs"],
            capture_output=True,
            text=True,
            timeout=30,
            check=True,
        ).stdout
        assert "name" in json.loads(answer)["error"]
    assert "0 of 0" in windlass("jobs").output


@pytest.mark.parametrize("typed", [("up",), ("up", "jobs:app"), ("serve",)], ids=" ".join)
def test_the_server_starts_without_the_libraries_of_packs(folder: Path, url: str, typed: tuple[str, ...]) -> None:
    for name in ("feedparser", "protego"):
        (folder / f"{name}.py").write_text(ABSENT, encoding="utf-8")
    with running(folder, url, *typed, "--port", "0") as process:
        said = greeting(process)
        if typed == ("up",):
            assert re.search(
                r"left out +packs staleness, crawl, feeds: feedparser, protego not installed; install windlass\[packs\]", said
            )
            assert "webhook" in said
            assert "enqueue-stale" not in said
        else:
            assert "left out" not in said


def test_a_pack_that_is_named_and_lacks_a_library_says_what_to_install(folder: Path, url: str) -> None:
    (folder / "feedparser.py").write_text(ABSENT, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "windlass", "up", "--packs", "feeds", "--port", "0"],
        cwd=folder,
        env=os.environ | {"WINDLASS_DATABASE_URL": url},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, "feeds needs feedparser; install windlass[packs]" in done.stderr) == (2, True), done.stderr
