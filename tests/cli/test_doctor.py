"""`windlass doctor`: what it prints and how it ends."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.at_terminal import at_terminal
from tests.cli.conftest import Command
from windlass import Windlass
from windlass.core.job import NewJob

BOTH = pytest.mark.parametrize("url", ["sqlite-file", "postgres"], indirect=True)


@BOTH
def test_a_well_database_ends_with_zero(windlass: Command) -> None:
    lines = windlass("doctor").stdout.splitlines()
    assert all(line.startswith("ok ") for line in lines[:-1])
    assert lines[-1] == f"windlass: {len(lines) - 1} ok, 0 warnings, 0 problems"


def test_a_warning_ends_with_one_and_says_what_helps(windlass: Command, app: Windlass) -> None:
    app.chores.pause_sync("prune")
    told = windlass("doctor", code=1).stdout
    assert "warning  chores      1 chore is paused (prune)\n" in told
    assert "help: windlass chores resume prune" in told


@BOTH
def test_a_problem_ends_with_two_and_comes_as_json_too(ask: Callable[..., Any], app: Windlass, windlass: Command) -> None:
    app.enqueue_sync("mail", {}, lane="pull")
    found = ask("doctor", code=2)
    assert found["verdict"] == "problem"
    [workers] = [one for one in found["checks"] if one["check"] == "workers"]
    assert (workers["verdict"], workers["remedy"]) == ("problem", "windlass worker MODULE:APP")
    assert set(workers) == {"check", "verdict", "message", "remedy", "details"}
    assert "problem  workers" in windlass("doctor", code=2).stdout


def test_a_database_that_does_not_answer_ends_with_two(windlass: Command) -> None:
    told = windlass("doctor", "--database", "postgresql://ann:hunter2@127.0.0.1:1/jobs", code=2).output
    assert "problem  database  cannot connect to PostgreSQL at 127.0.0.1, port 1" in told
    assert "hunter2" not in told


def test_a_file_that_is_not_there_is_not_made(windlass: Command, tmp_path: Path) -> None:
    told = windlass("doctor", "--database", f"sqlite:///{tmp_path}/nothing.db", code=2).output
    assert "there is no database" in told
    assert not (tmp_path / "nothing.db").exists()


def test_an_option_that_is_not_there_is_named(windlass: Command) -> None:
    assert "--fix" in windlass("doctor", "--fix", code=2).output


@BOTH
def test_a_repair_is_told_and_audited_under_who_typed_it(ask: Callable[..., Any], windlass: Command, app: Windlass) -> None:
    app.enqueue_sync("mail", {}, lane="pull")
    with app:
        app.chores.pause_sync("prune")
    wrong = "insert into windlass_counts (task, lane, state, jobs) values ('mail', 'pull', 'failed', 2)"
    _execute(app, wrong)
    deep = ask("doctor", "--deep", code=2)
    assert [one["verdict"] for one in deep["checks"] if one["check"] == "counts"] == ["problem"]
    told = windlass("doctor", "--repair", code=2).stdout
    assert "task 'mail', lane 'pull', failed: 2 counted, 0 present" in told
    [line] = [line for line in app.audit.list_sync() if line.action == "repair counts"]
    assert line.principal.startswith("cli:")
    deep = ask("doctor", "--deep", code=2)
    assert [one["verdict"] for one in deep["checks"] if one["check"] == "counts"] == ["ok"]


def _execute(app: Windlass, sql: str) -> None:
    app._backend(app.settings).script(lambda database: database.run_script(lambda connection: connection.execute(sql)))


def test_progress_is_shown_on_a_terminal_only(url: str, app: Windlass) -> None:
    # So many that no machine is done before a bar is drawn.
    for _ in range(4):
        app.enqueue_jobs_sync([NewJob(task="mail", lane="pull") for _ in range(5_000)])
    command = [sys.executable, "-m", "windlass", "doctor", "--deep", "--database", url]
    piped = subprocess.run(command, capture_output=True, check=False, timeout=60)
    assert piped.stderr == b""
    shown = at_terminal(80, url, "doctor", "--deep", is_error=True)
    assert "looking at jobs" in shown.text
    assert shown.raw.rstrip().endswith("\x1b[2K")
