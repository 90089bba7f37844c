"""Upkeep, chores, the cron migration and the crontab importer, as typed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from tests.cli.test_commands import windlass
from tests.support.stores import migrate_sqlite
from windlass.core.blocking import run
from windlass.core.cadence import Cron, Recurrence
from windlass.core.chore import CHORES
from windlass.core.job import Job, NewJob
from windlass.core.page import JobQuery
from windlass.store import Store, open_blocking_store

CRONTAB = """
MAILTO=ops
*/15 * * * * fetch --all
30 2 * * * report%hello
what is this
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "crontab").write_text(CRONTAB, encoding="utf-8")
    return tmp_path


@pytest.fixture
def store(folder: Path) -> Iterator[Store]:
    migrate_sqlite(folder / "windlass.db")
    opened = open_blocking_store(f"sqlite:///{folder}/windlass.db", rng=Random(1))
    yield opened
    run(opened.aclose())


def jobs(store: Store) -> list[Job]:
    return list(run(store.list_jobs(JobQuery(is_descending=False))).jobs)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_upkeep_alone_moves_the_queue_until_it_is_told_to_stop(folder: Path, store: Store, number: int) -> None:
    run(store.enqueue([NewJob(task="later", run_at=run(store.clock()))]))
    process = subprocess.Popen([sys.executable, "-m", "windlass", "upkeep"], cwd=folder, stderr=subprocess.PIPE, text=True)
    give_up = time.monotonic() + 30
    while len(run(store.chores.list())) < len(CHORES) and time.monotonic() < give_up:
        time.sleep(0.05)
    process.send_signal(number)
    _, lines = process.communicate(timeout=30)
    assert (process.returncode, "Traceback" in lines) == (0, False), lines
    assert {chore.last_error for chore in run(store.chores.list())} == {None}
    assert {chore.name for chore in run(store.chores.list())} == CHORES
    assert [job.state for job in jobs(store)] == ["pending"]


def test_chores_are_listed_paused_and_resumed(folder: Path, store: Store) -> None:
    assert windlass(folder, "chores", "pause", "age").stdout == "windlass: age is paused\n"
    assert windlass(folder, "chores", "pause", "age").stdout == "windlass: age was paused already\n"
    listed = windlass(folder, "chores", "list").stdout.splitlines()
    assert [line.split()[:2] for line in listed] == [["chore", "state"], ["age", "paused"]]
    assert windlass(folder, "chores", "resume", "age").stdout == "windlass: age goes on\n"
    assert {entry.action for entry in run(store.audit.list())} == {"resume chore", "pause chore"}


@pytest.mark.parametrize("verb", ["pause", "resume"])
def test_a_chore_that_was_mistyped_is_refused_with_the_nearest_name(folder: Path, store: Store, verb: str) -> None:
    refused = windlass(folder, "chores", verb, "promot")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "chore 'promot' not found; did you mean promote?" in refused.stderr
    assert "prune-workers" in refused.stderr
    assert run(store.chores.list()) == []
    assert windlass(folder, "chores", verb, "promote").returncode == 0


def test_convert_cron_shows_then_converts_then_undoes(folder: Path, store: Store) -> None:
    for text in ("0 */6 * * *", "*/7 * * * *"):
        run(store.enqueue([NewJob(task="crawl", name=text, recurrence=Recurrence(cadence=Cron(text)))]))
    shown = windlass(folder, "convert-cron")
    assert (shown.returncode, "every 6 hours" in shown.stdout, "1 would change" in shown.stdout) == (3, True, True), shown.stdout
    assert [job.recurrence and str(job.recurrence.cadence) for job in jobs(store)] == ["0 */6 * * *", "*/7 * * * *"]
    done = windlass(folder, "convert-cron", "--apply", "--json")
    assert [(one["cadence"], one["becomes"], one["reason"] is None) for one in json.loads(done.stdout)] == [
        ("0 */6 * * *", "@every 6h", True),
        ("*/7 * * * *", None, False),
    ]
    assert [job.recurrence and str(job.recurrence.cadence) for job in jobs(store)] == ["@every 6h", "*/7 * * * *"]
    undone = windlass(folder, "convert-cron", "--undo")
    assert (undone.returncode, "1 changed; 0 need review" in undone.stdout) == (0, True), undone.stdout
    assert [job.recurrence and str(job.recurrence.cadence) for job in jobs(store)] == ["0 */6 * * *", "*/7 * * * *"]
    assert "nothing to convert" in windlass(folder, "convert-cron", "--undo").stdout
    assert windlass(folder, "convert-cron", "--undo", "--apply").returncode == 2


def test_a_crontab_is_shown_then_imported_once(folder: Path, store: Store) -> None:
    shown = windlass(folder, "import", "crontab", "crontab")
    assert shown.returncode == 3
    assert "line 5: is too short" in shown.stdout, shown.stdout
    assert "every 15 minutes" in shown.stdout
    assert jobs(store) == []
    made = json.loads(windlass(folder, "import", "crontab", "crontab", "--apply", "--json").stdout)
    assert [one["status"] for one in made] == ["created", "created", None]
    again = json.loads(windlass(folder, "import", "crontab", "crontab", "--apply", "--json").stdout)
    assert [one["status"] for one in again] == ["unchanged", "unchanged", None]
    first, second = jobs(store)
    assert (first.task, first.name, first.max_attempts) == ("command", made[0]["name"], 1)
    assert second.payload == {"command": "report", "env": {"MAILTO": "ops"}, "stdin": "hello\n"}


def test_an_imported_line_runs_on_a_worker_with_the_pack(folder: Path, store: Store) -> None:
    (folder / "jobs.py").write_text("from windlass import Windlass\n\napp = Windlass()\n", encoding="utf-8")
    (folder / "one").write_text(f"* * * * * touch {folder}/ran\n", encoding="utf-8")
    assert windlass(folder, "import", "crontab", "one", "--apply").returncode == 0
    run(store.run_now([jobs(store)[0].id]))
    worker = subprocess.Popen(
        [sys.executable, "-m", "windlass", "worker", "jobs:app", "--alone"],
        cwd=folder,
        env={**os.environ, "WINDLASS_PACKS": "command"},
        stderr=subprocess.PIPE,
        text=True,
    )
    give_up = time.monotonic() + 30
    while not (folder / "ran").exists() and time.monotonic() < give_up:
        time.sleep(0.05)
    worker.send_signal(signal.SIGTERM)
    _, lines = worker.communicate(timeout=30)
    assert (folder / "ran").exists(), lines


def test_a_pack_nobody_knows_stops_the_worker_at_once(folder: Path) -> None:
    (folder / "jobs.py").write_text("from windlass import Windlass\n\napp = Windlass()\n", encoding="utf-8")
    done = windlass(folder, "worker", "jobs:app", WINDLASS_PACKS="comand")
    assert (done.returncode, "there is no pack 'comand'" in done.stderr) == (2, True), done.stderr
