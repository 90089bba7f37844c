"""`manage.py windlass` knows the project: its tasks, its options and its settings, on both databases."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.django.test_guide import Project, wait_for
from tests.django.test_project import postgres_settings
from tests.docs.blocks import Block

OPTIONS = {"pools": "default=3", "keep_days": 7}
SETTINGS = f"""
INSTALLED_APPS += ["windlass.django"]
TASKS = {{"default": {{"BACKEND": "windlass.django.WindlassBackend", "OPTIONS": {OPTIONS}}}}}
"""
TASKS = """
from django.tasks import task

@task
def send_receipt(order: int) -> str:
    return f"receipt for order {order}"
"""
ENQUEUE = "from shop.tasks import send_receipt; send_receipt.enqueue(order=1)"
DONE = """
import json, time
from shop.tasks import send_receipt
client = send_receipt.get_backend().client
until = time.monotonic() + 60
while (found := client.list_sync().jobs)[0].state != "completed":
    assert time.monotonic() < until, found
    time.sleep(0.1)
print("LOOK" + json.dumps([job.task for job in found]))
"""


@pytest.fixture(params=["sqlite", "postgres"])
def project(request: pytest.FixtureRequest, tmp_path: Path) -> Project:
    """Make a project with one task and empty tables."""
    made = bare_project(tmp_path)
    if request.param == "postgres":
        request.getfixturevalue("postgres_server")
        database = postgres_settings(request.getfixturevalue("postgres_dsn"))
        made.append(Block("python", "mysite/settings.py", f"DATABASES = {{'default': {database!r}}}\n"))
    made.run("manage.py", "migrate")
    return made


def bare_project(folder: Path) -> Project:
    made = Project(folder)
    made.append(Block("python", "mysite/settings.py", SETTINGS))
    made.append(Block("python", "shop/tasks.py", TASKS))
    return made


def test_up_runs_the_tasks_of_the_project_and_nothing_else(project: Project) -> None:
    project.run("manage.py", "shell", "-c", ENQUEUE)
    with project.running("python manage.py windlass up --port 0") as log:
        wait_for(log, "listening on")
        assert project.look(DONE) == ["shop.tasks.send_receipt"]
        text = log.read_text(encoding="utf-8")
        assert "default=3" in text
        address = re.search(r"listening on (http://\S+)", text)
        assert address is not None
        # ALLOWED_HOSTS is Django's, and guards what Django serves.
        elsewhere = httpx2.get(f"{address[1]}/login", headers={"host": "elsewhere.example"})
        assert elsewhere.status_code == 421
    assert project.run("manage.py", "windlass", "schedules", "list")[0].splitlines()[1:] == []


@pytest.mark.parametrize("command", ["worker", "worker windlass.django.application:default"])
def test_the_worker_of_the_command_line_is_that_of_the_project(project: Project, command: str) -> None:
    project.run("manage.py", "shell", "-c", ENQUEUE)
    with project.running(f"python manage.py windlass {command}") as log:
        assert project.look(DONE) == ["shop.tasks.send_receipt"]
        assert "default=3" in log.read_text(encoding="utf-8")


def test_the_shell_and_enqueue_know_the_tasks_before_any_worker_does(project: Project) -> None:
    answer, _ = project.run("manage.py", "windlass", "shell", typed="sorted(app.tasks), app.settings.keep_days\n")
    assert answer.strip() == "(['shop.tasks.send_receipt'], 7)"
    typed = ("manage.py", "windlass", "enqueue", "shop.tasks.send_receipt", "--arg", "order=1")
    assert "is enqueued" in project.run(*typed)[0]


def test_schedules_of_django_q_become_those_of_the_projects_tasks(project: Project, tmp_path: Path) -> None:
    project.append(Block("python", "mysite/settings.py", "TIME_ZONE = 'Europe/Paris'\n"))
    usual = {"func": "shop.tasks.send_receipt", "kwargs": "order=7", "next_run": "2026-01-15T06:00:00Z"}
    kinds: dict[str, dict[str, Any]] = {
        "daily": {"schedule_type": "C", "cron": "0 7 * * *"},
        "often": {"schedule_type": "I", "minutes": 1},
    }
    rows = [{"model": "django_q.schedule", "fields": {"name": name, **usual, **kind}} for name, kind in kinds.items()]
    (tmp_path / "schedules.json").write_text(json.dumps(rows))
    told, _ = project.run("manage.py", "windlass", "import", "django-q", "schedules.json", "--apply")
    assert "at 07:00 (Europe/Paris)" in told
    assert "TIME_ZONE" not in told
    [often] = [line for line in project.run("manage.py", "windlass", "schedules", "list")[0].splitlines() if "often" in line]
    number = often.split()[0]
    project.run("manage.py", "windlass", "run-now", number)
    with project.running("python manage.py windlass_worker --noreload") as log:
        wait_for(log, "state=SUCCESSFUL")
    assert "receipt for order 7" in project.run("manage.py", "windlass", "job", number)[0]


def test_options_of_django_go_before_the_command(project: Project, tmp_path: Path) -> None:
    places = tmp_path / "places"
    places.mkdir()
    (places / "elsewhere.py").write_text("from mysite.settings import *\nTASKS['jobs'] = TASKS['default']\n")
    asked = ("windlass", "--settings", "elsewhere", f"--pythonpath={places}", "--backend", "jobs", "shell")
    # Children are found from any folder too.
    answer, _ = project.run(str(project.folder / "manage.py"), *asked, typed="app.name\n", cwd=places)
    assert answer.strip() == "'jobs'"


def test_what_cannot_be_a_command_is_refused_in_one_line(project: Project) -> None:
    for arguments, told in (
        (("--settings",), "--settings needs a value"),
        (("--backend", "other", "jobs"), "TASKS['other'] is not Windlass; default is"),
    ):
        _, errors = project.run("manage.py", "windlass", *arguments, code=1)
        assert errors.strip() == f"CommandError: {told}"


def test_without_tables_the_remedy_is_a_command_of_the_project(tmp_path: Path) -> None:
    project = bare_project(tmp_path)
    _, errors = project.run("manage.py", "shell", "-c", ENQUEUE, code=1)
    assert errors.strip().endswith("no such table: windlass_jobs; run `python manage.py windlass_migrate`")
    project.run("manage.py", "windlass_migrate")
    project.run("manage.py", "shell", "-c", ENQUEUE)


def test_the_worker_starts_anew_for_files_it_came_to_know_later_and_after_a_mistake(project: Project) -> None:
    with project.running("python manage.py windlass_worker") as log:
        wait_for(log, "tasks     shop.tasks.send_receipt")
        project.append(Block("python", "shop/later.py", "from django.tasks import task\n\n@task\ndef one() -> None: ...\n"))
        project.append(Block("python", "shop/tasks.py", "from shop.later import one\n"))
        wait_for(log, "tasks     shop.later.one")
        # A module that this process has imported and the one that started it has not.
        project.append(Block("python", "shop/later.py", "@task\ndef two() -> None: ...\n"))
        wait_for(log, "shop.later.one, shop.later.two")
        project.append(Block("python", "shop/later.py", "this is no Python\n"))
        wait_for(log, "it ended with exit code 2; it starts anew when a file changes")
        told = log.read_text(encoding="utf-8").rpartition("changed; starting anew")[2]
        assert "shop/later.py" in told
        assert "SyntaxError: invalid syntax" in told
        assert "windlass/django" not in told
        assert len(told.splitlines()) < 20
        later = project.folder / "shop" / "later.py"
        later.write_text(later.read_text().replace("this is no Python", ""))
        wait_for(log, "shop.later.one, shop.later.two", times=2)
