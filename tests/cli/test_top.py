"""The live view, at a real terminal with real keys."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.cli.at_terminal import Typed
from tests.cli.conftest import Command
from windlass import Windlass
from windlass.cli.top_views import VIEWS
from windlass.core.job import JobState, NewJob

BOTH = pytest.mark.parametrize("url", ["sqlite-file", "postgres"], indirect=True)
DOWN, UP, HOME, END, ESCAPE = "\x1b[B", "\x1b[A", "\x1b[H", "\x1b[F", "\x1b"
APP = """
import asyncio
from windlass import Windlass

app = Windlass()


@app.task(name="slow-report", lane="slow")
async def report(seconds: float) -> None:
    await asyncio.sleep(seconds)


@app.task(name="bad-mail", lane="fast", max_attempts=1)
async def mail() -> None:
    raise ValueError("no such address")
"""


@contextmanager
def worker(url: str, folder: Path) -> Iterator[None]:
    """Run a real worker beside the view."""
    (folder / "jobs.py").write_text(APP, encoding="utf-8")
    command = [sys.executable, "-m", "windlass", "worker", "jobs:app", "--log-level", "error"]
    with subprocess.Popen(command, cwd=folder, env=os.environ | {"WINDLASS_DATABASE_URL": url}) as process:
        try:
            yield
        finally:
            process.kill()


def until(has_come: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not has_come():
        assert time.monotonic() < end
        time.sleep(0.1)


@BOTH
def test_keys_change_the_view_open_a_job_and_go_back(url: str, app: Windlass, tmp_path: Path) -> None:
    wanted = [
        NewJob(task="slow-report", lane="slow", payload='{"seconds": 600}'),
        NewJob(task="bad-mail", lane="fast", max_attempts=1),
    ]
    [running, failing] = [one.id for one in app.enqueue_jobs_sync(wanted)]
    with worker(url, tmp_path), Typed(url, "top", "--every", "0.5", lines=18) as typed:
        until(lambda: app.get_sync(failing).state is JobState.FAILED and app.get_sync(running).state is JobState.RUNNING)
        # It goes on by itself: nobody presses a key.
        shown = typed.wait(lambda text: "1 of 8 slots busy on 1 workers" in text and "slow" in text)
        assert "lane" in shown.splitlines()[2]
        typed.press("2")
        assert "slow-report" in typed.wait(lambda text: "task  " in text and "bad-mail" in text)
        typed.press("3")
        typed.wait(lambda text: "is online" in text and "yes" in text)
        typed.press("4")
        typed.wait(lambda text: "running for" in text and "slow-report" in text)
        typed.press("\r")
        typed.wait(lambda text: f"job {running}  slow-report  running" in text and "lines 1 to 14 of" in text)
        typed.press(END)
        typed.wait(lambda text: f"windlass logs {running} --follow" in text)
        typed.press(ESCAPE)
        typed.wait(lambda text: "running for" in text)
        typed.press("5")
        typed.wait(lambda text: "last error" in text and "no such address" in text)
        typed.press("\r")
        typed.press(END)
        typed.wait(lambda text: f"windlass retry {failing}" in text and "ValueError" in text)
        typed.press(ESCAPE + "q")
        assert typed.end() == 0
        assert typed.is_restored


def rows(shown: str) -> list[str]:
    return [line.split()[0] for line in shown.splitlines()[4:-1] if line.split()]


def test_the_chosen_row_moves_and_stays_chosen_when_it_is_sorted_anew(url: str, app: Windlass) -> None:
    app.enqueue_jobs_sync([NewJob(task=f"task-{one}", lane="pull") for one in "aabbbc"])
    with Typed(url, "top", "--view", "tasks", "--every", "60") as typed:
        assert rows(typed.wait(lambda text: "as listed" in text)) == ["task-b", "task-a", "task-c"]
        typed.press("r")
        assert rows(typed.wait(lambda text: "reversed" in text)) == ["task-c", "task-a", "task-b"]
        typed.press("rs")
        # The first column is the name.
        assert rows(typed.wait(lambda text: "by task" in text)) == ["task-a", "task-b", "task-c"]
        typed.press(UP + UP + DOWN)
        typed.wait(lambda _: "\x1b[7mtask-b" in typed.frame)
        typed.press("s")
        assert rows(typed.wait(lambda text: "by waiting" in text)) == ["task-b", "task-a", "task-c"]
        assert "\x1b[7mtask-b" in typed.frame
        typed.press("\r")
        shown = typed.wait(lambda text: "jobs of task task-b" in text)
        assert shown.count("task-b") == 4
        typed.press("\r")
        typed.wait(lambda text: "windlass boost" in text)
        typed.press(ESCAPE)
        typed.wait(lambda text: "jobs of task task-b" in text)
        typed.press("q")
        assert typed.end() == 0


def test_a_long_list_scrolls_and_a_new_size_is_drawn_at_once(url: str, app: Windlass) -> None:
    app.enqueue_jobs_sync([NewJob(task=f"task-{one:03}", lane="pull") for one in range(100)])
    with Typed(url, "top", "--view", "tasks", "--every", "60", lines=20, columns=100) as typed:
        shown = typed.wait(lambda text: "task-000" in text)
        assert len(shown.splitlines()) <= 20
        assert max(map(len, shown.splitlines())) <= 100
        typed.press(END)
        assert "task-000" not in typed.wait(lambda text: "task-099" in text)
        typed.press(HOME)
        typed.wait(lambda text: "task-000" in text)
        typed.resize(60, 10)
        shown = typed.wait(lambda text: "task-000" in text and "task-010" not in text)
        assert len(shown.splitlines()) <= 10
        assert max(map(len, shown.splitlines())) <= 60


def test_ctrl_c_is_a_good_end_and_gives_the_terminal_back(url: str) -> None:
    with Typed(url, "top") as typed:
        typed.wait(lambda text: "q quit" in text)
        assert not typed.is_restored
        typed.press("\x03")
        assert typed.end() == 0
        assert typed.is_restored


def test_a_signal_gives_the_terminal_back(url: str) -> None:
    with Typed(url, "top", NO_COLOR="1") as typed:
        assert "[1 lanes]" in typed.wait(lambda text: "q quit" in text)
        typed.process.send_signal(signal.SIGTERM)
        assert typed.end() == 128 + signal.SIGTERM
        assert typed.is_restored


def test_ctrl_z_gives_the_terminal_back_until_it_goes_on(url: str) -> None:
    with Typed(url, "top", "--every", "60") as typed:
        typed.wait(lambda text: "q quit" in text)
        typed.press("\x1a")
        until(lambda: Path(f"/proc/{typed.process.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T")
        typed._read(0.1)
        assert typed.is_restored
        typed.process.send_signal(signal.SIGCONT)
        typed.wait(lambda _: not typed.is_restored)
        typed.press("3")
        typed.wait(lambda text: "is online" in text or "nothing to list" in text)
        typed.press("q")
        assert typed.end() == 0


def test_an_error_gives_the_terminal_back_before_it_is_printed(url: str) -> None:
    code = """
from windlass.cli.keys import PressedKeys
from windlass.cli.screen import draw, screen
with screen(lambda: "", PressedKeys()):
    draw(["something"])
    raise RuntimeError("unheard of")
"""
    with Typed(url, "-c", code) as typed:
        assert typed.end() == 1
        assert typed.is_restored
        assert "unheard of" in typed.raw.partition("\x1b[?1049l")[2]


def test_it_goes_on_while_the_database_is_away(url: str, tmp_path: Path, app: Windlass) -> None:
    app.close()
    [file] = tmp_path.glob("*.db")
    with Typed(url, "top", "--every", "0.5") as typed:
        typed.wait(lambda text: "q quit" in text)
        file.rename(tmp_path / "elsewhere")
        typed.wait(lambda text: "q quit" not in text and "1 lanes" in text)
        (tmp_path / "elsewhere").rename(file)
        typed.wait(lambda text: "q quit" in text)
        typed.press("q")
        assert typed.end() == 0


def test_once_prints_every_view_and_json_everything(windlass: Command, ask: Callable[..., Any], app: Windlass) -> None:
    [dying] = app.enqueue_jobs_sync([NewJob(task="report", lane="slow")])
    app.bury_sync(dying, "boom")
    printed = windlass("top", "--once").stdout
    assert [line for line in printed.splitlines() if line in VIEWS] == list(VIEWS)
    assert "boom" in printed
    only = windlass("top", "--once", "--view", "failing").stdout
    assert "boom" in only
    assert "lanes" not in only
    found = ask("top")
    assert found["failing"][0]["last_error"] == "boom"
    assert found["lanes"]["slow"]["jobs"]["failed"] == 1
    assert (found["slowest"], found["workers"]) == ([], [])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "the standard input is not a terminal"),
        (("--view", "lines"), "'lines' is not one of 'lanes'"),
        (("--sort", "wating"), "sort: must be a column of lanes: lane, waiting"),
        (("--once", "--view", "slowest", "--sort", "waiting"), "sort: must be a column of slowest"),
        (("--every", "0.1"), "every: must be seconds from 0.5 to 86400"),
        (("--every", "often"), "'often'"),
    ],
)
def test_what_cannot_be_shown_is_refused_by_name(url: str, arguments: tuple[str, ...], words: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "windlass", "top", *arguments],
        env=os.environ | {"WINDLASS_DATABASE_URL": url},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, words in done.stderr) == (2, True), done.stderr
