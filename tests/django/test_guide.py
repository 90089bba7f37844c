"""docs/django.md does what it says, in a project that `startproject` has made."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import django
import pytest

from tests.django.test_project import environment, postgres_settings
from tests.docs.blocks import ROOT, Block, blocks, lines
from tests.support.postgres_server import PostgresServer
from windlass.cli.main import main

PAGE = "docs/django.md"
STEPS = ("mysite/settings.py", "shop/tasks.py", "shop/orders.py", "mysite/urls.py")
"""What the page asks for to adopt Windlass; the blocks behind them show more."""
LOOK = """
import json
from django.contrib.auth.models import User
from django.test import Client
from shop.later import remind
from shop.orders import place_order
from shop.tasks import clean_up, month_report, render, send_receipt
paid = place_order(1, is_paid=True)
try:
    place_order(2, is_paid=False)
except ValueError:
    pass
reports = [month_report.enqueue("May"), month_report.enqueue(month="May")]
remind(1), remind(1)
asked = Client(headers={"host": "localhost"}).get("/queue/")
print("LOOK" + json.dumps({
    "customers": User.objects.count(),
    "login": asked.headers["location"],
    "probe": Client(headers={"host": "localhost"}).get("/queue/healthz").status_code,
    "jobs": sorted(job.task for job in send_receipt.get_backend().client.list_sync().jobs if job.cadence is None),
    "same": reports[0].id == reports[1].id,
    "ids": [paid.id, reports[0].id, render.enqueue(page=7).id],
}))
"""
WAIT = """
import json, time
from shop.tasks import send_receipt
backend = send_receipt.get_backend()
until = time.monotonic() + 90
results = [backend.get_result(each) for each in {ids}]
while not all(result.is_finished for result in results):
    assert time.monotonic() < until, results
    time.sleep(0.1)
    [result.refresh() for result in results]
schedules = [job.task for job in backend.client.list_sync().jobs if job.cadence is not None]
print("LOOK" + json.dumps([[str(result.status), result.return_value] for result in results] + [schedules]))
"""


class Project:
    """A project in a folder, and what is typed there."""

    def __init__(self, folder: Path) -> None:
        """Make it as Django does, with one application."""
        self.folder = folder
        self._run("-m", "django", "startproject", "mysite", str(folder))
        self._run("manage.py", "startapp", "shop")
        self.append(Block("python", "mysite/settings.py", 'INSTALLED_APPS += ["shop"]\n'))

    def append(self, block: Block) -> None:
        """Write a block of the page where it belongs; on Django 5.2 with the import that the page names for it."""
        text = block.text
        if django.VERSION < (6,):
            text = text.replace("from django.tasks import task", "from django_tasks import task")
        with (self.folder / block.mark).open("a", encoding="utf-8") as file:
            file.write(f"\n{text}")

    def run(self, *command: str, code: int = 0, typed: str | None = None, cwd: Path | None = None) -> tuple[str, str]:
        """Run Python with these arguments; gives what it wrote, and what it wrote of errors."""
        done = subprocess.run(
            [sys.executable, *command],
            cwd=cwd or self.folder,
            env=environment(),
            input=typed,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == code, f"{command}\n{done.stdout}{done.stderr}"
        return done.stdout, done.stderr

    def _run(self, *command: str) -> str:
        return self.run(*command)[0]

    def type(self, line: str) -> str:
        """Run a line of the page."""
        program, *words = line.split()
        assert program == "python"
        return self._run(*words)

    def look(self, code: str) -> Any:
        """Run code in the project's shell."""
        return json.loads(self._run("manage.py", "shell", "-c", code).partition("LOOK")[2])

    @contextmanager
    def running(self, line: str) -> Iterator[Path]:
        """Leave a line running; gives where it writes, and stops it as a service manager would."""
        log = self.folder / "worker.log"
        with log.open("w", encoding="utf-8") as file:
            program = [sys.executable, *line.split()[1:]]
            process = subprocess.Popen(program, cwd=self.folder, env=environment(), stdout=file, stderr=subprocess.STDOUT)
            try:
                yield log
                process.send_signal(signal.SIGTERM)
                assert process.wait(60) == 0, log.read_text(encoding="utf-8")
            finally:
                if process.poll() is None:
                    process.kill()
                    process.wait()


def wait_for(log: Path, text: str, *, times: int = 1) -> None:
    until = time.monotonic() + 90
    while log.read_text(encoding="utf-8").count(text) < times:
        assert time.monotonic() < until, log.read_text(encoding="utf-8")
        time.sleep(0.1)


def follow(folder: Path, database: str) -> None:
    """Do what the page says, block by block and line by line."""
    project = Project(folder)
    if database:
        project.append(Block("python", "mysite/settings.py", database))
    shown = blocks(PAGE, "python")
    assert tuple(block.mark for block in shown[: len(STEPS)]) == STEPS
    for block in shown:
        if block.mark == "mysite/database.py" and database:
            continue
        is_setting = block.mark in {"mysite/options.py", "mysite/database.py"}
        project.append(block._replace(mark="mysite/settings.py") if is_setting else block)
    migrate, work, *asked = lines(PAGE)
    assert "Windlass: applied 0001" in project.type(migrate)
    before = project.look(LOOK)
    receipts = ["shop.tasks.send_receipt"] * 2
    assert before == {
        **before,
        "customers": 1,
        "login": "/admin/login/?next=/queue/",
        "probe": 302,
        "same": True,
        "jobs": ["shop.tasks.month_report", *receipts],
    }
    with project.running(work) as log:
        *results, schedules = project.look(WAIT.replace("{ids}", repr(before["ids"])))
        assert results == [["SUCCESSFUL", "receipt for order 1"], ["SUCCESSFUL", "report for May"], ["SUCCESSFUL", None]]
        assert schedules == ["shop.tasks.clean_up"]
        # A newcomer is not told of trouble where there is none.
        assert "WARNING" not in log.read_text(encoding="utf-8")
        if not database:
            # DEBUG is on, as `startproject` has it: the worker starts anew with the code as it is now.
            wait_for(log, "worker and upkeep")
            project.append(Block("python", "shop/tasks.py", "\n@task\ndef added_later() -> None: ...\n"))
            wait_for(log, "shop.tasks.added_later")
    if not database:
        assert "completed" in project.type(asked[0])
        assert "shop.tasks.send_receipt" in project.type(asked[1])


def test_a_new_project_on_sqlite_adopts_windlass_by_the_guide(tmp_path: Path) -> None:
    follow(tmp_path, "")


def test_a_new_project_on_postgres_adopts_windlass_by_the_guide(
    tmp_path: Path, postgres_server: PostgresServer, postgres_dsn: str
) -> None:
    del postgres_server
    follow(tmp_path, f"DATABASES = {{'default': {postgres_settings(postgres_dsn)!r}}}\n")


def test_check_finds_what_is_wrong_in_a_project_that_follows_the_guide(tmp_path: Path) -> None:
    project = Project(tmp_path)
    [adopting, *_] = blocks(PAGE, "python")
    project.append(adopting)
    project.type("python manage.py check")
    project.append(Block("python", "mysite/settings.py", "TASKS['default']['OPTIONS'] = {'keep_dayz': 7}\n"))
    _, errors = project.run("manage.py", "check", code=1)
    assert "(windlass.E006) TASKS['default']['OPTIONS']: keep_dayz is not a setting; did you mean keep_days?" in errors


@pytest.mark.skipif(django.VERSION >= (6,), reason="Django 6 has the Tasks framework itself")
def test_a_missing_tasks_framework_is_named_with_the_package_that_has_it(tmp_path: Path) -> None:
    project = Project(tmp_path)
    [adopting, *_] = blocks(PAGE, "python")
    project.append(adopting)
    # As on Python 3.12 and later, where nothing brings it along: this environment has it.
    hidden = "None if name == 'django_tasks' else find(name, *rest)"
    (tmp_path / "sitecustomize.py").write_text(
        "from importlib.machinery import PathFinder\n"
        "find = PathFinder.find_spec\n"
        f"PathFinder.find_spec = staticmethod(lambda name, *rest: {hidden})\n"
    )
    _, errors = project.run("-c", "import sys; sys.path.insert(0, '.'); import sitecustomize, manage; manage.main()", code=1)
    version = django.get_version()
    assert errors.strip().endswith(f"Django {version} has no Tasks framework of its own: pip install django-tasks")


@pytest.mark.parametrize("page", ["docs/coming-from/celery.md", "docs/coming-from/django-q.md"])
def test_the_project_of_those_who_come_from_another_queue_runs(page: str, tmp_path: Path) -> None:
    project = Project(tmp_path)
    [adopting, *_] = blocks(PAGE, "python")
    project.append(adopting)
    [tasks] = [block for block in blocks(page, "python") if block.mark]
    project.append(tasks)
    project.type("python manage.py migrate")
    with project.running("python manage.py windlass_worker --noreload") as log:
        project.run("manage.py", "shell", "-c", "from shop.tasks import start; start()")
        wait_for(log, "state=SUCCESSFUL")


def test_the_guides_to_deploy_run_commands_of_the_project(tmp_path: Path) -> None:
    systemd, docker, kubernetes = (
        (ROOT / f"docs/howto/{page}.md").read_text(encoding="utf-8").partition("## With Django or Flask")[2].partition("\n## ")[0]
        for page in ("systemd", "docker", "kubernetes")
    )
    typed = [found.split() for found in re.findall(r"ExecStart=\S+/python manage\.py ([^\n`]+)", systemd)]
    typed += [json.loads(found) for found in re.findall(r'(?:CMD|args:) (\["windlass_.*\])', docker + kubernetes)]
    in_containers = ["windlass_worker", "windlass_worker", "windlass_migrate"]
    assert [words[0] for words in typed] == ["windlass_worker", "windlass_migrate", *in_containers]
    of_flask = [found.split() for found in re.findall(r"ExecStart=\S+/flask windlass ([^\n`]+)", systemd)]
    of_flask += [json.loads(found) for found in re.findall(r'(?:CMD|args:) (\["[a-z]+".*?\])', docker + kubernetes)]
    assert [words[0] for words in of_flask] == ["worker", "migrate", "serve", "worker", "worker", "migrate", "serve"]
    for words in of_flask:
        command = main.get_command(click.Context(main), words[0])
        assert command is not None
        command.make_context(words[0], words[1:])
    project = Project(tmp_path)
    project.append(blocks(PAGE, "python")[0])
    code = (
        "from django.core.management import load_command_class\n"
        f"for name, *words in {typed}:\n"
        "    load_command_class('windlass.django', name).create_parser('manage.py', name).parse_args(words)\n"
    )
    project.run("manage.py", "shell", "-c", code)


def test_the_guide_takes_less_than_thirty_lines() -> None:
    written = [line for block in blocks(PAGE, "python")[: len(STEPS)] for line in block.text.splitlines() if line]
    assert len(written) + len(lines(PAGE)[:2]) < 30


def test_what_the_guide_installs_exists() -> None:
    [typed] = [block.text for block in blocks(PAGE, "text")]
    extras = re.search(r"windlass\[([\w,]+)\]", typed)
    assert extras is not None
    known = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    assert set(extras[1].split(",")) <= known.keys()
